/* ranks: 1 2 3 4 7
 * Access at each rank's own pointer, alone and together.
 */
#include "check.h"

static MPI_Offset position(MPI_File file) {
    MPI_Offset at = -1;
    CHECK_OK(MPI_File_get_position(file, &at));
    return at;
}

/* Blocks of a view in turn: alone, together, and mixed with explicit offsets. */
static void in_turn(void) {
    enum { BLOCK = 10, BLOCKS = 20 };
    const char *path = check_path("turn");
    check_remove(path);
    MPI_File file;
    MPI_Datatype type;
    MPI_Status status;
    MPI_Type_vector(1, BLOCK, BLOCK, MPI_INT, &type);
    MPI_Datatype tile;
    MPI_Type_create_resized(type, 0, (MPI_Aint)(BLOCK * sizeof(int)) * check.size, &tile);
    MPI_Type_commit(&tile);
    CHECK_OK(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDWR | MPI_MODE_CREATE, MPI_INFO_NULL, &file));
    CHECK_OK(MPI_File_set_view(file, (MPI_Offset)(BLOCK * sizeof(int)) * check.rank, MPI_INT, tile, "native", MPI_INFO_NULL));
    int data[BLOCK * BLOCKS], back[BLOCK * BLOCKS];
    for (int i = 0; i < BLOCK * BLOCKS; i++) data[i] = check.rank << 20 | i;
    int moved = 0;
    for (int step = 0; moved < BLOCK * BLOCKS; step++) {
        int now = 1 + step * 7 % 23;
        if (now > BLOCK * BLOCKS - moved) now = BLOCK * BLOCKS - moved;
        if (step % 2) CHECK_OK(MPI_File_write_all(file, data + moved, now, MPI_INT, &status));
        else CHECK_OK(MPI_File_write(file, data + moved, now, MPI_INT, &status));
        CHECK_COUNT(status, MPI_INT, now);
        moved += now;
        CHECK_EQ(position(file), moved);
        CHECK_OK(MPI_File_write_at(file, moved - 1, data + moved - 1, 1, MPI_INT, &status));
        CHECK_EQ(position(file), moved);
    }
    CHECK_OK(MPI_File_sync(file));
    check_barrier();
    CHECK_OK(MPI_File_seek(file, 0, MPI_SEEK_SET));
    memset(back, 0, sizeof back);
    for (moved = 0; moved < BLOCK * BLOCKS;) {
        int now = moved % 3 ? 25 : 15;
        if (now > BLOCK * BLOCKS - moved) now = BLOCK * BLOCKS - moved;
        if (moved % 2) CHECK_OK(MPI_File_read_all(file, back + moved, now, MPI_INT, &status));
        else CHECK_OK(MPI_File_read(file, back + moved, now, MPI_INT, &status));
        CHECK_COUNT(status, MPI_INT, now);
        moved += now;
        CHECK_EQ(position(file), moved);
    }
    CHECK(memcmp(data, back, sizeof data) == 0, "all blocks read back");
    check_barrier();
    for (int block = 0; block < BLOCKS; block++)
        CHECK_FILE(path, (long long)(sizeof(int) * BLOCK) * (block * check.size + check.rank), data + block * BLOCK,
                   sizeof(int) * BLOCK);
    CHECK_OK(MPI_File_close(&file));
    MPI_Type_free(&tile);
    MPI_Type_free(&type);
    check_remove(path);
}

/* A pointer moves by what was asked for, also at the end of the file. */
static void at_the_end(void) {
    const char *path = check_path("end");
    check_make_shared(path, 100, 4);
    MPI_File file;
    MPI_Status status;
    unsigned char back[80];
    CHECK_OK(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDWR, MPI_INFO_NULL, &file));
    CHECK_OK(MPI_File_seek(file, 60, MPI_SEEK_SET));
    memset(back, 0xee, sizeof back);
    CHECK_OK(MPI_File_read(file, back, 80, MPI_BYTE, &status));
    CHECK_COUNT(status, MPI_BYTE, 40);
    CHECK_FILLED(back, 60, 40, 4);
    CHECK(back[40] == 0xee, "memory past the end is untouched");
    CHECK_EQ(position(file), 140);
    CHECK_OK(MPI_File_read(file, back, 1, MPI_BYTE, &status));
    CHECK_COUNT(status, MPI_BYTE, 0);
    CHECK_EQ(position(file), 141);
    CHECK_OK(MPI_File_seek(file, 90, MPI_SEEK_SET));
    CHECK_OK(MPI_File_read_all(file, back, 20, MPI_BYTE, &status));
    CHECK_COUNT(status, MPI_BYTE, 10);
    CHECK_EQ(position(file), 110);
    CHECK_OK(MPI_File_close(&file));
    check_remove(path);
}

/* The count of a derived type moves the pointer by its elements. */
static void derived_counts(void) {
    const char *path = check_own_path("derived");
    MPI_File file;
    MPI_Datatype gaps;
    MPI_Status status;
    double data[30];
    for (int i = 0; i < 30; i++) data[i] = i;
    MPI_Type_vector(5, 2, 3, MPI_DOUBLE, &gaps);
    MPI_Type_commit(&gaps);
    CHECK_OK(MPI_File_open(MPI_COMM_SELF, path, MPI_MODE_RDWR | MPI_MODE_CREATE, MPI_INFO_NULL, &file));
    CHECK_OK(MPI_File_set_view(file, 0, MPI_DOUBLE, MPI_DOUBLE, "native", MPI_INFO_NULL));
    CHECK_OK(MPI_File_write(file, data, 2, gaps, &status));
    CHECK_COUNT(status, gaps, 2);
    CHECK_EQ(position(file), 20);
    CHECK_EQ(check_size(path), 160);
    double back[30];
    memset(back, 0, sizeof back);
    CHECK_OK(MPI_File_seek(file, -20, MPI_SEEK_CUR));
    CHECK_OK(MPI_File_read(file, back, 2, gaps, &status));
    /* The second item starts where the first ends: 14 doubles on. */
    CHECK(back[0] == 0 && back[1] == 1 && back[2] == 0 && back[13] == 13 && back[14] == 14 && back[16] == 0 && back[27] == 27,
          "%g %g %g", back[13], back[14], back[27]);
    CHECK_OK(MPI_File_close(&file));
    MPI_Type_free(&gaps);
    unlink(path);
}

int main(int argc, char **argv) {
    check_begin(argc, argv);
    in_turn();
    at_the_end();
    derived_counts();
    return check_end();
}

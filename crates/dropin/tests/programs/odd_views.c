/* ranks: 1 2 4
 * Views that the letter of the standard does not allow and that ROMIO and OMPIO both take: etypes with holes and
 * bounds of their own, filetypes of other basic types, holes that are no multiples of the etype. All mean the same
 * thing: the bytes of the filetype in its order, tiled, of which an etype counts as many as it has data.
 */
#include "check.h"

enum { PIECES = 8, REACH = 400, START = 16 };

typedef struct {
    const char *name;
    MPI_Datatype etype, filetype;
    /* Where the data of one tile lies, in order; and how far tiles are apart. */
    int pieces[PIECES][2];
    int extent;
} View;

static MPI_Datatype committed(MPI_Datatype type) {
    MPI_Type_commit(&type);
    return type;
}

static MPI_Datatype contiguous(int count, MPI_Datatype of) {
    MPI_Datatype type;
    MPI_Type_contiguous(count, of, &type);
    return committed(type);
}

static MPI_Datatype resized(MPI_Datatype of, MPI_Aint lower, MPI_Aint extent) {
    MPI_Datatype type;
    MPI_Type_create_resized(of, lower, extent, &type);
    return committed(type);
}

static MPI_Datatype vector(int count, MPI_Aint stride, MPI_Datatype of) {
    MPI_Datatype type;
    MPI_Type_create_hvector(count, 1, stride, of, &type);
    return committed(type);
}

static MPI_Datatype placed(int count, const MPI_Aint *places, MPI_Datatype of) {
    MPI_Datatype type;
    int lengths[PIECES] = {1, 1, 1, 1, 1, 1, 1, 1};
    MPI_Type_create_hindexed(count, lengths, places, of, &type);
    return committed(type);
}

/* Elements 1 and 2 of 4. */
static MPI_Datatype part(MPI_Datatype of) {
    MPI_Datatype type;
    MPI_Type_create_subarray(1, (int[]){4}, (int[]){2}, (int[]){1}, MPI_ORDER_C, of, &type);
    return committed(type);
}

static MPI_Datatype structure(MPI_Aint last) {
    MPI_Datatype type;
    MPI_Type_create_struct(3, (int[]){1, 1, 1}, (MPI_Aint[]){0, 4, last},
                           (MPI_Datatype[]){MPI_CHAR, MPI_INT, MPI_DOUBLE}, &type);
    return committed(type);
}

#define PLACES(...) (sizeof((MPI_Aint[]){__VA_ARGS__}) / sizeof(MPI_Aint)), (MPI_Aint[]){__VA_ARGS__}

/* Byte `k` of the view's data lies here. */
static long place(const View *view, long k) {
    long size = 0, tile;
    for (int i = 0; i < PIECES; i++) size += view->pieces[i][1];
    tile = k / size;
    k %= size;
    int i = 0;
    for (; k >= view->pieces[i][1]; i++) k -= view->pieces[i][1];
    return START + tile * view->extent + view->pieces[i][0] + k;
}

static void expect_data(const View *view, const char *path, long first, int bytes, const char *how) {
    unsigned char wanted[REACH] = {0}, found[REACH] = {0};
    for (long k = 0; k < bytes; k++) wanted[place(view, first + k)] = check_byte(k, 1);
    int descriptor = open(path, O_RDONLY);
    ssize_t got = pread(descriptor, found, REACH, (long long)check.rank * REACH);
    close(descriptor);
    int same = 0;
    while (same < REACH && found[same] == wanted[same]) same++;
    CHECK(got >= 0 && same == REACH, "%s: %s: byte %d is %d, wanted %d", view->name, how, same,
          same < REACH ? found[same] : 0, same < REACH ? wanted[same] : 0);
}

static MPI_File open_with(const View *view, const char *path, int mode) {
    MPI_File file = MPI_FILE_NULL;
    CHECK_OK(MPI_File_open(MPI_COMM_WORLD, path, mode, MPI_INFO_NULL, &file));
    int code = MPI_File_set_view(file, (MPI_Offset)check.rank * REACH + START, view->etype, view->filetype, "native",
                                 MPI_INFO_NULL);
    CHECK(code == MPI_SUCCESS, "%s: %s", view->name, check_error_text(code));
    return file;
}

static void try_view(const View *view) {
    const char *path = check_path("view");
    unsigned char data[64], back[64];
    int size, new = MPI_MODE_RDWR | MPI_MODE_CREATE;
    MPI_Type_size(view->etype, &size);
    int bytes = size * (size > 16 ? 2 : 4);
    check_fill(data, 0, sizeof data, 1);
    for (int etypes = 0; etypes < 2; etypes++) {
        MPI_File file = open_with(view, path, new);
        CHECK_OK(MPI_File_write_at(file, etypes, data, bytes, MPI_BYTE, MPI_STATUS_IGNORE));
        MPI_Offset at = -1;
        CHECK_OK(MPI_File_get_byte_offset(file, etypes, &at));
        CHECK_EQ(at, (MPI_Offset)check.rank * REACH + place(view, (long)etypes * size));
        CHECK_OK(MPI_File_sync(file));
        check_barrier();
        expect_data(view, path, (long)etypes * size, bytes, "write_at");
        memset(back, 0, sizeof back);
        CHECK_OK(MPI_File_read_at_all(file, etypes, back, bytes, MPI_BYTE, MPI_STATUS_IGNORE));
        CHECK(memcmp(back, data, (size_t)bytes) == 0, "%s: read_at_all", view->name);
        CHECK_OK(MPI_File_close(&file));
        check_remove(path);

        file = open_with(view, path, new);
        CHECK_OK(MPI_File_seek(file, etypes, MPI_SEEK_SET));
        CHECK_OK(MPI_File_write_all(file, data, bytes / 2, MPI_BYTE, MPI_STATUS_IGNORE));
        CHECK_OK(MPI_File_write_all(file, data + bytes / 2, bytes / 2, MPI_BYTE, MPI_STATUS_IGNORE));
        CHECK_OK(MPI_File_get_position(file, &at));
        CHECK_EQ(at, etypes + bytes / size);
        CHECK_OK(MPI_File_sync(file));
        check_barrier();
        expect_data(view, path, (long)etypes * size, bytes, "write_all");
        MPI_Request request;
        memset(back, 0, sizeof back);
        CHECK_OK(MPI_File_iread_at(file, etypes, back, bytes, MPI_BYTE, &request));
        CHECK_OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        CHECK(memcmp(back, data, (size_t)bytes) == 0, "%s: iread_at", view->name);
        CHECK_OK(MPI_File_close(&file));
        check_remove(path);
    }
}

static void all_views(void) {
    MPI_Datatype two = contiguous(2, MPI_INT), every_12 = resized(two, 0, 12), every_8 = resized(MPI_INT, 0, 8);
    MPI_Datatype spread = vector(2, 8, MPI_INT), behind_4 = resized(MPI_INT, 4, 8), before_4 = resized(MPI_INT, -4, 12);
    MPI_Datatype inner = part(MPI_INT), record = structure(8);
    View views[] = {
        {"8 bytes every 12", every_12, every_12, {{0, 8}}, 12},
        {"8 bytes every 12, three", every_12, contiguous(3, every_12), {{0, 8}, {12, 8}, {24, 8}}, 36},
        {"8 bytes every 12, over dense ints", every_12, contiguous(4, MPI_INT), {{0, 16}}, 16},
        {"8 bytes every 12, over ints apart", every_12, contiguous(2, resized(MPI_INT, 0, 12)), {{0, 4}, {12, 4}}, 24},
        {"8 bytes every 12, a hole of 8", every_12, placed(PLACES(0, 20), every_12), {{0, 8}, {20, 8}}, 32},
        {"8 bytes every 12, a stride of 20", every_12, vector(3, 20, every_12), {{0, 8}, {20, 8}, {40, 8}}, 52},
        {"8 bytes every 12, tiles of 16", every_12, resized(every_12, 0, 16), {{0, 8}}, 16},
        {"8 bytes every 12, tiles of 8", every_12, resized(every_12, 0, 8), {{0, 8}}, 8},
        {"4 bytes every 8, over an int", every_8, MPI_INT, {{0, 4}}, 4},
        {"int hole int", spread, contiguous(2, spread), {{0, 4}, {8, 4}, {12, 4}, {20, 4}}, 24},
        {"int hole int, tiles of 16", spread, resized(spread, 0, 16), {{0, 4}, {8, 4}}, 16},
        {"int hole int, over dense ints", spread, contiguous(4, MPI_INT), {{0, 16}}, 16},
        {"a lower bound, in a subarray", behind_4, part(behind_4), {{8, 4}, {16, 4}}, 32},
        {"a lower bound below the data, in a subarray", before_4, part(before_4), {{12, 4}, {24, 4}}, 48},
        {"a subarray in a subarray", inner, part(inner), {{20, 8}, {36, 8}}, 64},
        {"an extent of one and a half", MPI_INT, resized(MPI_INT, 0, 6), {{0, 4}}, 6},
        {"bounds around it", MPI_INT, resized(MPI_INT, -6, 10), {{0, 4}}, 10},
        /* Hosts round the extent of such a type differently. */
        {"a hole of half an etype", MPI_INT, resized(placed(PLACES(0, 6), MPI_INT), 0, 10), {{0, 4}, {6, 4}}, 10},
        {"ints over bytes", MPI_INT, contiguous(8, MPI_BYTE), {{0, 8}}, 8},
        {"ints over bytes apart", MPI_INT, vector(4, 2, MPI_BYTE), {{0, 1}, {2, 1}, {4, 1}, {6, 1}}, 7},
        {"ints over doubles", MPI_INT, MPI_DOUBLE, {{0, 8}}, 8},
        {"doubles over ints", MPI_DOUBLE, two, {{0, 8}}, 8},
        {"ints over floats apart", MPI_INT, vector(2, 8, MPI_FLOAT), {{0, 4}, {8, 4}}, 12},
        {"shorts over ints", MPI_SHORT, MPI_INT, {{0, 4}}, 4},
        {"records over bytes", record, contiguous(13, MPI_BYTE), {{0, 13}}, 13},
        {"records, tiles of 20", record, resized(record, 0, 20), {{0, 1}, {4, 12}}, 20},
        {"records over others of the same members", record, structure(12), {{0, 1}, {4, 4}, {12, 8}}, 24},
    };
    for (size_t i = 0; i < sizeof views / sizeof *views; i++) try_view(&views[i]);
}

/* What both refuse. */
static void refusals(void) {
    MPI_File file = MPI_FILE_NULL;
    CHECK_OK(MPI_File_open(MPI_COMM_WORLD, check_path("refusals"),
                           MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file));
    struct {
        MPI_Datatype etype, filetype;
    } refused[] = {
        {MPI_INT, contiguous(3, MPI_BYTE)},          {MPI_INT, contiguous(6, MPI_BYTE)},
        {MPI_DOUBLE, MPI_INT},                       {MPI_INT, placed(PLACES(12, 0), MPI_INT)},
        {MPI_INT, placed(PLACES(-8, 4), MPI_INT)},   {MPI_INT, placed(PLACES(0, 0), MPI_INT)},
        {MPI_BYTE, placed(PLACES(4, 0), MPI_SHORT)},
    };
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        CHECK_CLASS(MPI_File_set_view(file, 0, refused[i].etype, refused[i].filetype, "native", MPI_INFO_NULL),
                    MPI_ERR_TYPE, MPI_ERR_ARG);
    CHECK_OK(MPI_File_close(&file));
}

/* Operations keep the view that they began with. */
static void pending(void) {
    enum { LONG = 1 << 18 };
    static unsigned char data[4][LONG];
    const char *path = check_path("pending");
    MPI_Datatype every_other = resized(MPI_INT, 0, 8);
    MPI_File file = MPI_FILE_NULL;
    MPI_Request requests[3];
    CHECK_OK(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDWR | MPI_MODE_CREATE, MPI_INFO_NULL, &file));
    for (int i = 0; i < 4; i++) check_fill(data[i], (4LL * check.rank + i) * LONG, LONG, 2);
    MPI_Offset start = 4LL * check.rank * LONG;
    CHECK_OK(MPI_File_set_view(file, start, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
    CHECK_OK(MPI_File_iwrite_at(file, 0, data[0], LONG, MPI_BYTE, &requests[0]));
    CHECK_OK(MPI_File_set_view(file, start, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
    CHECK_OK(MPI_File_iwrite_at_all(file, LONG, data[1], LONG, MPI_BYTE, &requests[1]));
    CHECK_OK(MPI_File_set_view(file, start + LONG, MPI_SHORT, MPI_SHORT, "native", MPI_INFO_NULL));
    CHECK_OK(MPI_File_iwrite_at_all(file, LONG / 2, data[2], LONG, MPI_BYTE, &requests[2]));
    CHECK_OK(MPI_File_set_view(file, start + 3 * LONG, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
    CHECK_OK(MPI_File_write_all_begin(file, data[3], LONG, MPI_BYTE));
    CHECK_OK(MPI_File_set_view(file, 0, MPI_INT, every_other, "native", MPI_INFO_NULL));
    CHECK_OK(MPI_File_write_all_end(file, data[3], MPI_STATUS_IGNORE));
    CHECK_OK(MPI_Waitall(3, requests, MPI_STATUSES_IGNORE));
    CHECK_OK(MPI_File_sync(file));
    CHECK_FILE(path, start, data, sizeof data);
    /* An ordered call finds its place by the shared pointer, which a view resets. */
    CHECK_OK(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
    CHECK_OK(MPI_File_write_ordered_begin(file, data[0], 10, MPI_BYTE));
    for (int i = 0; i < 3; i++)
        CHECK_OK(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
    CHECK_OK(MPI_File_write_ordered_end(file, data[0], MPI_STATUS_IGNORE));
    MPI_Offset at = -1;
    CHECK_OK(MPI_File_get_position_shared(file, &at));
    CHECK_EQ(at, 0);
    CHECK_FILE(path, 10 * check.rank, data[0], 10);
    CHECK_OK(MPI_File_close(&file));
    MPI_Type_free(&every_other);
    check_remove(path);
}

int main(int argc, char **argv) {
    check_begin(argc, argv);
    all_views();
    refusals();
    pending();
    return check_end();
}

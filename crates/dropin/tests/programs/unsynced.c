/* ranks: 1 2 4
 * What holds without MPI_File_sync: a rank sees its own writes, whichever calls made and read them, and writes of
 * disjoint bytes do not disturb each other, at whatever byte they meet. Hard where ranks have caches of their own
 * (NFS). UNSYNCED_ROUNDS sets the number of rounds; with UNSYNCED_LOCKS=0, locks between ranks must be refused;
 * with UNSYNCED_MAP=0, files cannot be mapped, because the kernel does not have them.
 */
#ifndef CHECK_SECONDS
#define CHECK_SECONDS 1200
#endif
#include "check.h"
#include <sys/mman.h>

enum { PIECES = 96, FILE_BYTES = 1 << 19, LONGEST = 9000, SYNC_EVERY = 8 };

/* A piece of the file that one rank writes in some of the rounds; every rank knows all of them. */
struct piece {
    long at, len;
    int owner, chosen;
};

/* The same sequence on all ranks. */
static uint64_t state = 1;
static long next(long bound) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (long)((state >> 33) % (uint64_t)bound);
}

/* Ascending disjoint pieces, most of them short, many adjacent. */
static int make_pieces(struct piece *pieces) {
    long at = next(5000);
    int count = 0;
    while (count < PIECES) {
        struct piece *piece = &pieces[count];
        piece->len = 1 + next(next(4) ? 300 : LONGEST);
        piece->owner = (int)next(check.size);
        piece->at = at;
        if (at + piece->len > FILE_BYTES) break;
        at += piece->len + (next(3) ? 0 : next(5000));
        count++;
    }
    return count;
}

/* Whether this rank writes a piece in this round. */
static int is_mine(const struct piece *piece) { return piece->chosen && piece->owner == check.rank; }

/* This rank's pieces as a view and as bytes one after the other. */
struct own {
    MPI_Datatype view;
    unsigned char *data;
    int len;
};

static struct own own_pieces(const struct piece *pieces, int count, int round) {
    int lengths[PIECES], mine = 0;
    MPI_Aint displacements[PIECES];
    struct own own = {MPI_BYTE, malloc(PIECES * LONGEST), 0};
    for (int i = 0; i < count; i++) {
        if (!is_mine(&pieces[i])) continue;
        lengths[mine] = (int)pieces[i].len;
        displacements[mine++] = pieces[i].at;
        check_fill(own.data + own.len, pieces[i].at, (size_t)pieces[i].len, round);
        own.len += (int)pieces[i].len;
    }
    MPI_Type_create_hindexed(mine, lengths, displacements, MPI_BYTE, &own.view);
    MPI_Type_commit(&own.view);
    return own;
}

static void write_pieces(MPI_File file, const struct piece *pieces, int count, const struct own *own) {
    const unsigned char *from = own->data;
    for (int i = 0; i < count; i++) {
        if (!is_mine(&pieces[i])) continue;
        CHECK_OK(MPI_File_write_at(file, pieces[i].at, from, (int)pieces[i].len, MPI_BYTE, MPI_STATUS_IGNORE));
        from += pieces[i].len;
    }
}

static void set_bytes(MPI_File file) {
    CHECK_OK(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
}

/* Each rank writes its pieces by one kind of call and reads them back by another: collectively through a view, piece by
 * piece, or independently through the view, which may rewrite the gaps between them. */
static void round_trip(MPI_File file, const struct piece *pieces, int count, struct own *own, int round) {
    unsigned char *back = calloc(PIECES, LONGEST);
    int by_pieces = round % 3 == 1, collectively = round % 3 == 0, independent_read = round / 3 % 2;
    if (by_pieces) write_pieces(file, pieces, count, own);
    if (!by_pieces || !independent_read)
        CHECK_OK(MPI_File_set_view(file, 0, MPI_BYTE, own->len ? own->view : MPI_BYTE, "native", MPI_INFO_NULL));
    if (collectively) CHECK_OK(MPI_File_write_at_all(file, 0, own->data, own->len, MPI_BYTE, MPI_STATUS_IGNORE));
    else if (!by_pieces) CHECK_OK(MPI_File_write_at(file, 0, own->data, own->len, MPI_BYTE, MPI_STATUS_IGNORE));
    if (!independent_read) CHECK_OK(MPI_File_read_at_all(file, 0, back, own->len, MPI_BYTE, MPI_STATUS_IGNORE));
    if (!by_pieces || !independent_read) set_bytes(file);
    if (independent_read) {
        unsigned char *to = back;
        for (int i = 0; i < count; i++) {
            if (!is_mine(&pieces[i])) continue;
            CHECK_OK(MPI_File_read_at(file, pieces[i].at, to, (int)pieces[i].len, MPI_BYTE, MPI_STATUS_IGNORE));
            to += pieces[i].len;
        }
    }
    CHECK(!memcmp(back, own->data, (size_t)own->len), "round %d: a rank does not see its own bytes", round);
    free(back);
}

static void check_all(MPI_File file, const unsigned char *expected, long size, const char *when) {
    unsigned char *found = calloc(1, FILE_BYTES);
    MPI_Offset bytes = -1;
    CHECK_OK(MPI_File_get_size(file, &bytes));
    CHECK_EQ(bytes, size);
    CHECK_OK(MPI_File_read_at(file, 0, found, (int)size, MPI_BYTE, MPI_STATUS_IGNORE));
    long at = 0;
    while (at < size && found[at] == expected[at]) at++;
    CHECK(at == size, "%s, byte %ld of %ld differs", when, at, size);
    free(found);
}

static void pieces_at_any_byte(int rounds) {
    const char *path = check_path("pieces");
    unsigned char *expected = calloc(1, FILE_BYTES);
    struct piece pieces[PIECES];
    int count = make_pieces(pieces);
    long size = 0;
    MPI_File file;
    check_remove(path);
    CHECK_OK(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file));
    for (int round = 0; round < rounds; round++) {
        for (int i = 0; i < count; i++) pieces[i].chosen = next(3) == 0;
        struct own own = own_pieces(pieces, count, round);
        for (int i = 0; i < count; i++) {
            if (!pieces[i].chosen) continue;
            check_fill(expected + pieces[i].at, pieces[i].at, (size_t)pieces[i].len, round);
            if (pieces[i].at + pieces[i].len > size) size = pieces[i].at + pieces[i].len;
        }
        round_trip(file, pieces, count, &own, round);
        if (round % SYNC_EVERY == SYNC_EVERY - 1) {
            CHECK_OK(MPI_File_sync(file));
            check_barrier();
            CHECK_OK(MPI_File_sync(file));
            check_all(file, expected, size, "after sync, barrier, sync");
            check_barrier(); /* everybody has read */
        }
        MPI_Type_free(&own.view);
        free(own.data);
    }
    CHECK_OK(MPI_File_close(&file));
    CHECK_OK(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDONLY, MPI_INFO_NULL, &file));
    check_all(file, expected, size, "after close and open");
    CHECK_OK(MPI_File_close(&file));
    free(expected);
}

/* Sizes that another rank has set or written are seen after the call, or after sync. */
static void sizes(void) {
    MPI_File file;
    MPI_Offset bytes = -1;
    char data[3000];
    int last = check.size - 1;
    memset(data, 'x', sizeof data);
    CHECK_OK(MPI_File_open(MPI_COMM_WORLD, check_path("sizes"), MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE,
                           MPI_INFO_NULL, &file));
    CHECK_OK(MPI_File_set_size(file, 10000));
    CHECK_OK(MPI_File_get_size(file, &bytes));
    CHECK_EQ(bytes, 10000);
    CHECK_OK(MPI_File_set_size(file, 100));
    CHECK_OK(MPI_File_get_size(file, &bytes));
    CHECK_EQ(bytes, 100);
    check_barrier(); /* everybody has asked */
    if (check.rank == last) CHECK_OK(MPI_File_write_at(file, 5000, data, sizeof data, MPI_CHAR, MPI_STATUS_IGNORE));
    CHECK_OK(MPI_File_sync(file));
    check_barrier();
    CHECK_OK(MPI_File_sync(file));
    CHECK_OK(MPI_File_get_size(file, &bytes));
    CHECK_EQ(bytes, 8000);
    /* Must not overwrite what the other rank has appended. */
    CHECK_OK(MPI_File_preallocate(file, 7000));
    CHECK_OK(MPI_File_preallocate(file, 9000));
    CHECK_OK(MPI_File_get_size(file, &bytes));
    CHECK_EQ(bytes, 9000);
    CHECK_OK(MPI_File_read_at(file, 5000, data, sizeof data, MPI_CHAR, MPI_STATUS_IGNORE));
    CHECK(data[0] == 'x' && data[sizeof data - 1] == 'x', "%d and %d", data[0], data[sizeof data - 1]);
    CHECK_OK(MPI_File_close(&file));
}

/* What a rank has mapped, and so keeps in its node's cache, does not get in the way of its reads. */
static void mapped_reader(void) {
    enum { LEN = 20000 };
    const char *path = check_path("mapped");
    unsigned char data[LEN], *map = MAP_FAILED;
    MPI_File file;
    check_remove(path);
    CHECK_OK(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file));
    CHECK_OK(MPI_File_set_size(file, LEN));
    int fd = open(path, O_RDONLY);
    if (fd >= 0) map = mmap(NULL, LEN, PROT_READ, MAP_SHARED, fd, 0);
    /* virtiofs with `cache=never` has no mappings. */
    if (map == MAP_FAILED && errno == ENODEV) check_skip("mapped reader", strerror(errno));
    else CHECK(map != MAP_FAILED, "cannot map the file: %s", strerror(errno));
    for (int round = 1; round <= 5; round++) {
        volatile unsigned char touched = 0;
        for (int at = 0; map != MAP_FAILED && at < LEN; at += 1000) touched = map[at];
        (void)touched;
        check_barrier(); /* everybody has its pages */
        if (check.rank == round % check.size) {
            memset(data, round, LEN);
            CHECK_OK(MPI_File_write_at(file, 0, data, LEN, MPI_BYTE, MPI_STATUS_IGNORE));
        }
        CHECK_OK(MPI_File_sync(file));
        check_barrier();
        CHECK_OK(MPI_File_sync(file));
        memset(data, 0, LEN);
        CHECK_OK(MPI_File_read_at(file, 0, data, LEN, MPI_BYTE, MPI_STATUS_IGNORE));
        int old = 0;
        for (int at = 0; at < LEN; at++) old += data[at] != round;
        CHECK(!old, "round %d: %d bytes of %d are old", round, old, LEN);
    }
    if (map != MAP_FAILED) munmap(map, LEN);
    if (fd >= 0) close(fd);
    CHECK_OK(MPI_File_close(&file));
}

/* Every record of the shared pointer is one rank's, and none is lost. */
static void shared_records(void) {
    enum { RECORDS = 20, LEN = 777 };
    MPI_File file;
    unsigned char record[LEN];
    MPI_Offset bytes = -1;
    CHECK_OK(MPI_File_open(MPI_COMM_WORLD, check_path("shared"), MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE,
                           MPI_INFO_NULL, &file));
    memset(record, 1 + check.rank, LEN);
    for (int i = 0; i < RECORDS; i++) CHECK_OK(MPI_File_write_shared(file, record, LEN, MPI_BYTE, MPI_STATUS_IGNORE));
    CHECK_OK(MPI_File_sync(file));
    check_barrier();
    CHECK_OK(MPI_File_sync(file));
    CHECK_OK(MPI_File_get_size(file, &bytes));
    CHECK_EQ(bytes, (long)RECORDS * LEN * check.size);
    int found[256] = {0};
    for (int i = 0; i < RECORDS * check.size; i++) {
        CHECK_OK(MPI_File_read_at(file, (MPI_Offset)i * LEN, record, LEN, MPI_BYTE, MPI_STATUS_IGNORE));
        int is_one = 1;
        for (int j = 1; j < LEN; j++) is_one = is_one && record[j] == record[0];
        CHECK(is_one, "record %d is torn", i);
        found[record[0]]++;
    }
    for (int rank = 0; rank < check.size; rank++) CHECK_EQ(found[1 + rank], RECORDS);
    CHECK_OK(MPI_File_close(&file));
}

/* Without locks between the nodes, what needs them fails on all ranks, and everything else works. */
static void refused(void) {
    MPI_File file;
    char byte = 0;
    CHECK_OK(MPI_File_open(MPI_COMM_WORLD, check_path("refused"), MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE,
                           MPI_INFO_NULL, &file));
    CHECK_CLASS(MPI_File_set_atomicity(file, 1), MPI_ERR_UNSUPPORTED_OPERATION);
    CHECK_CLASS(MPI_File_write_shared(file, &byte, 1, MPI_BYTE, MPI_STATUS_IGNORE), MPI_ERR_UNSUPPORTED_OPERATION);
    CHECK_OK(MPI_File_write_at_all(file, check.rank, &byte, 1, MPI_BYTE, MPI_STATUS_IGNORE));
    CHECK_OK(MPI_File_close(&file));
}

int main(int argc, char **argv) {
    check_begin(argc, argv);
    const char *rounds = getenv("UNSYNCED_ROUNDS");
    pieces_at_any_byte(rounds ? atoi(rounds) : 32);
    sizes();
    const char *map = getenv("UNSYNCED_MAP");
    if (!map || atoi(map)) mapped_reader();
    const char *locks = getenv("UNSYNCED_LOCKS");
    if (!locks || atoi(locks)) shared_records();
    else refused();
    return check_end();
}

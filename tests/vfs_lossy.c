/* vfs_lossy.c - a SQLite VFS whose un-synced writes die with the process.
 *
 *     LD_PRELOAD=tests/vfs_lossy.so fastweightd ...     then kill -9
 *
 * After kill -9 the kernel still has every write, so that alone proves nothing about a power
 * cut. This shim over "unix" keeps what is written to databases, WALs and journals in memory,
 * shared by all handles of the file, and gives it to the file in xSync only; so the kill takes
 * every write that was not synced. FW_VFS_IGNORE_SYNC=1 ignores xSync (synchronous=OFF).
 *
 * A file is known by its inode, so it keeps its memory through close, reopening and rename; at
 * a normal exit all of it is written. Real bytes count below `real_end` only: above it the file
 * was truncated since the last sync. One mutex guards everything. Locks and shared memory pass
 * through. The descriptors of this file are never closed, which would drop SQLite's locks. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BLOCK 4096

struct disk { /* one file as the process sees it */
    struct disk *next;
    dev_t dev;
    ino_t ino;
    int fd;
    int64_t size, real_end;
    unsigned char **block; /* (blocks,) un-synced blocks, or NULL where the file counts */
    size_t blocks;
};

struct lossy_file { /* what SQLite allocates for a handle; the real one lies behind it */
    sqlite3_file base;
    struct disk *disk; /* NULL: a temporary file, all passes through */
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct disk *disks, *deleted; /* deleted: handles may still have them */
static sqlite3_vfs lossy, *unix_vfs;

static sqlite3_file *real_of(sqlite3_file *f)
{
    return (sqlite3_file *)((struct lossy_file *)f + 1);
}

static struct disk *disk_of(sqlite3_file *f)
{
    return ((struct lossy_file *)f)->disk;
}

static struct disk *find_disk(const struct stat *st)
{
    struct disk *d = disks;

    while (d && (d->dev != st->st_dev || d->ino != st->st_ino))
        d = d->next;
    return d;
}

static struct disk *open_disk(const char *path)
{
    struct disk *d = calloc(1, sizeof *d);
    struct stat st;

    if (!d)
        return NULL;
    d->fd = open(path, O_RDWR | O_CLOEXEC);
    if (d->fd < 0 && (errno == EACCES || errno == EROFS))
        d->fd = open(path, O_RDONLY | O_CLOEXEC);
    if (d->fd < 0 || fstat(d->fd, &st) < 0) {
        free(d);
        return NULL;
    }
    d->dev = st.st_dev;
    d->ino = st.st_ino;
    d->size = d->real_end = st.st_size;
    d->next = disks;
    disks = d;
    return d;
}

/* The real bytes of one block, zero where there are none. */
static int read_real(struct disk *d, int64_t number, unsigned char *to)
{
    int64_t at = number * BLOCK, want = d->real_end - at;
    ssize_t n = 0;

    memset(to, 0, BLOCK);
    if (want > BLOCK)
        want = BLOCK;
    if (want > 0)
        n = pread(d->fd, to, (size_t)want, at);
    return n < 0 ? SQLITE_IOERR_READ : SQLITE_OK;
}

static int grow(struct disk *d, size_t blocks)
{
    size_t more = blocks + blocks / 2 + 64;
    unsigned char **block;

    if (blocks <= d->blocks)
        return SQLITE_OK;
    block = realloc(d->block, more * sizeof *block);
    if (!block)
        return SQLITE_IOERR_NOMEM;
    memset(block + d->blocks, 0, (more - d->blocks) * sizeof *block);
    d->block = block;
    d->blocks = more;
    return SQLITE_OK;
}

/* The block in memory, brought there when it was not. */
static int hold(struct disk *d, int64_t number, unsigned char **ret)
{
    int rc = grow(d, (size_t)number + 1);

    if (rc != SQLITE_OK)
        return rc;
    if (!d->block[number]) {
        d->block[number] = malloc(BLOCK);
        if (!d->block[number])
            return SQLITE_IOERR_NOMEM;
        rc = read_real(d, number, d->block[number]);
    }
    *ret = d->block[number];
    return rc;
}

static int write_disk(struct disk *d, const unsigned char *from, int64_t len, int64_t at)
{
    unsigned char *block;
    int64_t n, skip;
    int rc;

    for (; len > 0; from += n, at += n, len -= n) {
        skip = at % BLOCK;
        n = len < BLOCK - skip ? len : BLOCK - skip;
        rc = hold(d, at / BLOCK, &block);
        if (rc != SQLITE_OK)
            return rc;
        memcpy(block + skip, from, (size_t)n);
        if (at + n > d->size)
            d->size = at + n;
    }
    return SQLITE_OK;
}

static int read_disk(struct disk *d, unsigned char *to, int64_t len, int64_t at)
{
    unsigned char real[BLOCK];
    const unsigned char *from;
    int64_t n, skip, number;
    int rc = SQLITE_OK;

    if (at + len > d->size) { /* SQLite wants the rest zeroed */
        n = d->size > at ? d->size - at : 0;
        memset(to + n, 0, (size_t)(len - n));
        len = n;
        rc = SQLITE_IOERR_SHORT_READ;
    }
    for (; len > 0; to += n, at += n, len -= n) {
        number = at / BLOCK;
        skip = at % BLOCK;
        n = len < BLOCK - skip ? len : BLOCK - skip;
        from = (size_t)number < d->blocks ? d->block[number] : NULL;
        if (!from) {
            if (read_real(d, number, real) != SQLITE_OK)
                return SQLITE_IOERR_READ;
            from = real;
        }
        memcpy(to, from + skip, (size_t)n);
    }
    return rc;
}

static int truncate_disk(struct disk *d, int64_t size)
{
    size_t i, first = (size_t)((size + BLOCK - 1) / BLOCK);
    unsigned char *block;

    if (size >= d->size)
        return SQLITE_OK;
    for (i = first; i < d->blocks; i++) {
        free(d->block[i]);
        d->block[i] = NULL;
    }
    if (size % BLOCK) { /* what is cut off must read as zero if the file grows again */
        if (hold(d, size / BLOCK, &block) != SQLITE_OK)
            return SQLITE_IOERR_TRUNCATE;
        memset(block + size % BLOCK, 0, (size_t)(BLOCK - size % BLOCK));
    }
    d->size = size;
    if (d->real_end > size)
        d->real_end = size;
    return SQLITE_OK;
}

static int flush_block(struct disk *d, size_t i)
{
    int64_t at = (int64_t)i * BLOCK, n = d->size - at < BLOCK ? d->size - at : BLOCK;

    if (n > 0 && pwrite(d->fd, d->block[i], (size_t)n, at) != n)
        return SQLITE_IOERR_FSYNC;
    free(d->block[i]);
    d->block[i] = NULL;
    return SQLITE_OK;
}

static int flush_disk(struct disk *d)
{
    size_t i;

    if (ftruncate(d->fd, d->real_end) < 0)
        return SQLITE_IOERR_FSYNC;
    for (i = 0; i < d->blocks; i++) {
        if (d->block[i] && flush_block(d, i) != SQLITE_OK)
            return SQLITE_IOERR_FSYNC;
    }
    if (ftruncate(d->fd, d->size) < 0 || fdatasync(d->fd) < 0)
        return SQLITE_IOERR_FSYNC;
    d->real_end = d->size;
    return SQLITE_OK;
}

static int lossy_close(sqlite3_file *f)
{
    return real_of(f)->pMethods->xClose(real_of(f));
}

static int lossy_read(sqlite3_file *f, void *to, int len, sqlite3_int64 at)
{
    int rc;

    if (!disk_of(f))
        return real_of(f)->pMethods->xRead(real_of(f), to, len, at);
    pthread_mutex_lock(&mutex);
    rc = read_disk(disk_of(f), to, len, at);
    pthread_mutex_unlock(&mutex);
    return rc;
}

static int lossy_write(sqlite3_file *f, const void *from, int len, sqlite3_int64 at)
{
    int rc;

    if (!disk_of(f))
        return real_of(f)->pMethods->xWrite(real_of(f), from, len, at);
    pthread_mutex_lock(&mutex);
    rc = write_disk(disk_of(f), from, len, at);
    pthread_mutex_unlock(&mutex);
    return rc;
}

static int lossy_truncate(sqlite3_file *f, sqlite3_int64 size)
{
    int rc;

    if (!disk_of(f))
        return real_of(f)->pMethods->xTruncate(real_of(f), size);
    pthread_mutex_lock(&mutex);
    rc = truncate_disk(disk_of(f), size);
    pthread_mutex_unlock(&mutex);
    return rc;
}

static int lossy_sync(sqlite3_file *f, int flags)
{
    const char *ignore = getenv("FW_VFS_IGNORE_SYNC");
    int rc;

    if (!disk_of(f))
        return real_of(f)->pMethods->xSync(real_of(f), flags);
    if (ignore && strcmp(ignore, "1") == 0)
        return SQLITE_OK;
    pthread_mutex_lock(&mutex);
    rc = flush_disk(disk_of(f));
    pthread_mutex_unlock(&mutex);
    return rc;
}

static int lossy_size(sqlite3_file *f, sqlite3_int64 *ret)
{
    if (!disk_of(f))
        return real_of(f)->pMethods->xFileSize(real_of(f), ret);
    pthread_mutex_lock(&mutex);
    *ret = disk_of(f)->size;
    pthread_mutex_unlock(&mutex);
    return SQLITE_OK;
}

static int lossy_lock(sqlite3_file *f, int level)
{
    return real_of(f)->pMethods->xLock(real_of(f), level);
}

static int lossy_unlock(sqlite3_file *f, int level)
{
    return real_of(f)->pMethods->xUnlock(real_of(f), level);
}

static int lossy_reserved(sqlite3_file *f, int *ret)
{
    return real_of(f)->pMethods->xCheckReservedLock(real_of(f), ret);
}

static int lossy_control(sqlite3_file *f, int op, void *arg)
{
    if (disk_of(f) && (op == SQLITE_FCNTL_SIZE_HINT || op == SQLITE_FCNTL_CHUNK_SIZE))
        return SQLITE_OK; /* the real file's size is not SQLite's to change */
    return real_of(f)->pMethods->xFileControl(real_of(f), op, arg);
}

static int lossy_sector(sqlite3_file *f)
{
    return real_of(f)->pMethods->xSectorSize(real_of(f));
}

static int lossy_traits(sqlite3_file *f)
{
    return real_of(f)->pMethods->xDeviceCharacteristics(real_of(f)) &
           SQLITE_IOCAP_POWERSAFE_OVERWRITE;
}

static int lossy_shm_map(sqlite3_file *f, int page, int size, int extend, void volatile **ret)
{
    return real_of(f)->pMethods->xShmMap(real_of(f), page, size, extend, ret);
}

static int lossy_shm_lock(sqlite3_file *f, int offset, int n, int flags)
{
    return real_of(f)->pMethods->xShmLock(real_of(f), offset, n, flags);
}

static void lossy_shm_barrier(sqlite3_file *f)
{
    real_of(f)->pMethods->xShmBarrier(real_of(f));
}

static int lossy_shm_unmap(sqlite3_file *f, int delete)
{
    return real_of(f)->pMethods->xShmUnmap(real_of(f), delete);
}

static const sqlite3_io_methods methods = {
    /* version 2: no mmap, which would see the real file */
    .iVersion = 2,
    .xClose = lossy_close,
    .xRead = lossy_read,
    .xWrite = lossy_write,
    .xTruncate = lossy_truncate,
    .xSync = lossy_sync,
    .xFileSize = lossy_size,
    .xLock = lossy_lock,
    .xUnlock = lossy_unlock,
    .xCheckReservedLock = lossy_reserved,
    .xFileControl = lossy_control,
    .xSectorSize = lossy_sector,
    .xDeviceCharacteristics = lossy_traits,
    .xShmMap = lossy_shm_map,
    .xShmLock = lossy_shm_lock,
    .xShmBarrier = lossy_shm_barrier,
    .xShmUnmap = lossy_shm_unmap,
};

static int lossy_open(sqlite3_vfs *vfs, const char *path, sqlite3_file *f, int flags, int *out)
{
    struct lossy_file *file = (struct lossy_file *)f;
    struct stat st;
    int rc;

    (void)vfs;
    file->base.pMethods = NULL;
    file->disk = NULL;
    rc = unix_vfs->xOpen(unix_vfs, path, real_of(f), flags, out);
    if (rc != SQLITE_OK)
        return rc;
    file->base.pMethods = &methods;
    if (!path || !(flags & (SQLITE_OPEN_MAIN_DB | SQLITE_OPEN_MAIN_JOURNAL | SQLITE_OPEN_WAL)))
        return SQLITE_OK;
    pthread_mutex_lock(&mutex);
    if (stat(path, &st) == 0)
        file->disk = find_disk(&st);
    if (!file->disk)
        file->disk = open_disk(path);
    pthread_mutex_unlock(&mutex);
    return file->disk ? SQLITE_OK : SQLITE_CANTOPEN;
}

static int lossy_delete(sqlite3_vfs *vfs, const char *path, int sync_dir)
{
    struct disk **at = &disks, *d;
    struct stat st;

    (void)vfs;
    pthread_mutex_lock(&mutex);
    d = stat(path, &st) == 0 ? find_disk(&st) : NULL;
    while (d && *at != d)
        at = &(*at)->next;
    if (d) { /* a new file may get its inode */
        *at = d->next;
        d->next = deleted;
        deleted = d;
    }
    pthread_mutex_unlock(&mutex);
    return unix_vfs->xDelete(unix_vfs, path, sync_dir);
}

/* To SQLite an empty file does not exist; ours may be empty on the disk alone. */
static int lossy_access(sqlite3_vfs *vfs, const char *path, int flags, int *ret)
{
    struct disk *d = NULL;
    struct stat st;

    (void)vfs;
    if (flags != SQLITE_ACCESS_EXISTS)
        return unix_vfs->xAccess(unix_vfs, path, flags, ret);
    pthread_mutex_lock(&mutex);
    if (stat(path, &st) == 0)
        d = find_disk(&st);
    if (d)
        *ret = d->size > 0;
    pthread_mutex_unlock(&mutex);
    return d ? SQLITE_OK : unix_vfs->xAccess(unix_vfs, path, flags, ret);
}

__attribute__((constructor)) static void install(void)
{
    if (sqlite3_initialize() != SQLITE_OK)
        abort();
    unix_vfs = sqlite3_vfs_find("unix");
    if (!unix_vfs)
        abort();
    lossy = *unix_vfs; /* its functions that we keep do not look at the VFS they get */
    lossy.pNext = NULL;
    lossy.zName = "lossy";
    lossy.szOsFile = (int)sizeof(struct lossy_file) + unix_vfs->szOsFile;
    lossy.xOpen = lossy_open;
    lossy.xDelete = lossy_delete;
    lossy.xAccess = lossy_access;
    if (sqlite3_vfs_register(&lossy, 1) != SQLITE_OK)
        abort();
}

__attribute__((destructor)) static void write_everything(void)
{
    struct disk *d;

    for (d = disks; d; d = d->next)
        flush_disk(d);
}

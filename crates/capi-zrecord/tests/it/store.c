/* Appends, reads, deletes and compacts; ends with the line of the first thing that is not as it should be. */
#include <string.h>
#include <zrecord.h>

#define WANT(what) do { if (!(what)) return __LINE__; } while (0)

int main(int argc, char **argv) {
    int32_t code = 1;
    uint8_t src[40], dst[40];
    uint64_t ids[3] = {2, 0, 1}, offsets[3] = {0, 20, 30};
    uint32_t lens[3] = {10, 20, 10}, out[3] = {0, 0, 0};
    uint32_t records;
    uint64_t live, end;
    if (argc != 2) return 1;
    for (int i = 0; i < 40; i++) src[i] = (uint8_t)(i * 3);

    Zrecord *zr = zr_open(argv[1], strlen(argv[1]), &code);
    WANT(zr && code == 0 && zr_len(zr) == 0 && zr_max_record_len() == 1048576);
    WANT(zr_append(zr, src, 40, 2, 10, 10, 1) == 0);
    WANT(zr_append_var(zr, src, 40, 1, offsets + 1, lens + 1, 0) == 2);
    WANT(zr_lengths(zr, ids, 3, out) == 0 && out[0] == 20 && out[1] == 10 && out[2] == 10);
    WANT(zr_gather_var(zr, ids, 3, dst, 40, offsets) == 0);
    WANT(!memcmp(dst, src + 20, 20) && !memcmp(dst + 20, src, 20));
    WANT(zr_gather(zr, ids + 1, 2, dst, 40, 15) == 0 && !memcmp(dst + 15, src + 10, 10));

    WANT(zr_gather(zr, ids, 3, dst, 39, 20) == -6);
    ids[0] = 3;
    WANT(zr_gather(zr, ids, 1, dst, 40, 20) == -3);
    WANT(zr_delete(zr, ids, 1) == -3);
    WANT(zr_append(zr, src, 40, 1, 41, 41, 0) == -6);
    WANT(zr_append(zr, src, 40, 1, 0, 0, 0) == -4);
    WANT(zr_append(zr, src, 40, 1, 10, 10, 9) == -2);
    WANT(zr_append(zr, NULL, 40, 1, 10, 10, 0) == -2);

    ids[0] = 0;
    WANT(zr_delete(zr, ids, 1) == 0 && zr_len(zr) == 2);
    zr_stats(zr, &records, &live, &end);
    WANT(records == 2 && live == 30 && end == 40);
    WANT(zr_compact(zr) == 0 && zr_sync(zr) == 0);
    zr_stats(zr, NULL, NULL, &end);
    WANT(end == 30);
    zr_close(zr);

    WANT(!zr_open("/nowhere/at/all", 15, &code) && code == -2);
    WANT(zr_len(NULL) == 0 && zr_sync(NULL) == -2 && zr_compact(NULL) == -2);
    zr_close(NULL);
    return 0;
}

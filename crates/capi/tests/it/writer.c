/* Writes two shards to the path it is given and prints their offsets; checks on the way what must be refused. */
#include "tensilo_pack.h"

#include <stdio.h>
#include <string.h>

#define CHECK(condition)                                                    \
    do {                                                                    \
        if (!(condition)) {                                                 \
            fprintf(stderr, "line %d: %s [%s]\n", __LINE__, #condition, why); \
            return 1;                                                       \
        }                                                                   \
    } while (0)

int main(int argc, char **argv) {
    char why[200] = "";
    char tiny[4] = "xxx";
    const uint32_t payload[] = {1, 2, 0xffffffffu}, header[] = {0, 3}, more[] = {7}, headers[] = {4, 5, 6, 7};
    uint64_t at[4] = {0, 0, 0, 0};
    qh5_lossless_pack_v1_writer *w = NULL, *other = NULL;
    if (argc != 2) return 2;

    CHECK(qh5_lossless_pack_v1_writer_open(argv[1], 511, &w, why, sizeof why) == 1 && w == NULL && why[0]);
    CHECK(qh5_lossless_pack_v1_writer_open(NULL, 512, &w, tiny, sizeof tiny) == 1 && strlen(tiny) == 3);
    CHECK(qh5_lossless_pack_v1_writer_open("/nowhere/at/all.h5", 512, &w, NULL, 0) == 3);
    CHECK(qh5_lossless_pack_v1_writer_append_shard(NULL, 0, payload, 3, header, 2, NULL, NULL, NULL, 0) == 1);

    CHECK(qh5_lossless_pack_v1_writer_open(argv[1], 65536, &w, why, sizeof why) == 0 && w && !why[0]);
    CHECK(qh5_lossless_pack_v1_writer_append_shard(w, 1, payload, 3, header, 2, NULL, NULL, why, sizeof why) == 1);
    CHECK(qh5_lossless_pack_v1_writer_append_shard(w, 0, payload, 0, header, 2, NULL, NULL, why, sizeof why) == 1);
    CHECK(qh5_lossless_pack_v1_writer_append_shard(w, 0, payload, 3, NULL, 2, NULL, NULL, why, sizeof why) == 1);
    CHECK(qh5_lossless_pack_v1_writer_append_shard(w, 0, payload, 3, header, 2, &at[0], &at[1], why, sizeof why) == 0);
    CHECK(qh5_lossless_pack_v1_writer_append_shard(w, 0, more, 1, headers, 4, NULL, NULL, why, sizeof why) == 1);
    CHECK(qh5_lossless_pack_v1_writer_append_shard(w, 1, more, 1, headers, 4, &at[2], &at[3], why, sizeof why) == 0);
    CHECK(qh5_lossless_pack_v1_writer_close(w, why, sizeof why) == 0);

    CHECK(qh5_lossless_pack_v1_writer_open(argv[1], 65536, &other, why, sizeof why) == 2);
    {
        char path[4096];
        snprintf(path, sizeof path, "%s.second", argv[1]);
        CHECK(qh5_lossless_pack_v1_writer_open(path, 512, &other, why, sizeof why) == 0);
        CHECK(qh5_lossless_pack_v1_writer_append_shard(other, 0, more, 1, header, 2, NULL, NULL, why, sizeof why) == 0);
        qh5_lossless_pack_v1_writer_abort(other);
    }
    qh5_lossless_pack_v1_writer_abort(NULL);
    printf("%llu %llu %llu %llu\n", (unsigned long long)at[0], (unsigned long long)at[1],
           (unsigned long long)at[2], (unsigned long long)at[3]);
    return 0;
}

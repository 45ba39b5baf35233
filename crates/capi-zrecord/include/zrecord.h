/* Zrecord v1 stores (docs/formats/zrecord-v1.md): the functions of loaderx 0.5.0's libzrecord, which this library can
 * replace.
 *
 * Negative answers are codes: -1 out of memory, -2 the system refused, another handle is in the way, or the request
 * makes no sense, -3 index out of range, -4 record not of 1 to zr_max_record_len() bytes, -5 store is full, -6 buffer
 * too small, or places in it overlap, -7 stored record failed to decode, -8 not a store, or of a newer version.
 *
 * A store may be used by several threads. A null store is refused, not followed.
 */
#ifndef TENSILO_ZRECORD_H
#define TENSILO_ZRECORD_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct Zrecord Zrecord;

/* Opens a store; creates it when there is none and the folder above exists. Null on failure; the code goes to `code`
 * where that is not null. */
Zrecord *zr_open(const char *path_ptr, size_t path_len, int32_t *code);

/* Closes a store; null does nothing. */
void zr_close(Zrecord *zr);

/* Number of records, those included that others have appended; 0 for a null store. */
uint32_t zr_len(Zrecord *zr);

/* Makes everything durable that anyone wrote; what this library appends is so already. */
int32_t zr_sync(Zrecord *zr);

/* Longest record in bytes: 1048576. */
uint32_t zr_max_record_len(void);

/* Bytes of each record of a list. */
int32_t zr_lengths(Zrecord *zr, const uint64_t *idxs, size_t n, uint32_t *out);

/* Decodes records, the i-th to byte i * stride. */
int32_t zr_gather(Zrecord *zr, const uint64_t *idxs, size_t n, uint8_t *dst, size_t dst_len, size_t stride);

/* Decodes records, the i-th to byte offsets[i]. */
int32_t zr_gather_var(Zrecord *zr, const uint64_t *idxs, size_t n, uint8_t *dst, size_t dst_len,
                      const uint64_t *offsets);

/* Appends n records of item_len bytes, one every stride bytes of src, with codec 0 (raw) or 1 (flate); all or none,
 * and durable. Answers the index of the first. */
int64_t zr_append(Zrecord *zr, const uint8_t *src, size_t src_len, size_t n, size_t stride, size_t item_len,
                  uint8_t codec);

/* Appends n records, the i-th lens[i] bytes from byte offsets[i] of src on. */
int64_t zr_append_var(Zrecord *zr, const uint8_t *src, size_t src_len, size_t n, const uint64_t *offsets,
                      const uint32_t *lens, uint8_t codec);

/* Removes records; the last ones get their indices. Refused while other handles use the store. */
int32_t zr_delete(Zrecord *zr, const uint64_t *idxs, size_t n);

/* Gives the space of deleted records back. Refused while other handles use the store. */
int32_t zr_compact(Zrecord *zr);

/* Records, bytes that they take, and bytes up to the end of the store; where a pointer is not null. */
void zr_stats(Zrecord *zr, uint32_t *records, uint64_t *live_bytes, uint64_t *chunk_bytes);

#ifdef __cplusplus
}
#endif

#endif

/* The low-level writer of a pack's HDF5 body (Lossless Pack Format v1).
 *
 * Every function but abort answers 0, or: 1 the request makes no sense, 2 something stands at the path, 3 the
 * folder is not there, 4 the disk is full, 5 the system refused, 6 anything else. Where `message` is not null, up to
 * `capacity` bytes of a zero-terminated text say why (an empty text after success).
 *
 * A writer is used by one thread at a time. Nothing stands under the path before close; the user block is zeros, and
 * whoever wants a complete pack writes prelude, manifest and index there.
 */
#ifndef TENSILO_PACK_H
#define TENSILO_PACK_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct qh5_lossless_pack_v1_writer qh5_lossless_pack_v1_writer;

/* Begins a file with a user block of 512 bytes or one of its doublings (a pack has 65536); the path must be free. */
int32_t qh5_lossless_pack_v1_writer_open(const char *path, uint64_t user_block_bytes,
                                         qh5_lossless_pack_v1_writer **writer, char *message, size_t capacity);

/* Appends the next shard: ordinals count from 0 and neither part may be empty. The offsets, where not null, get the
 * absolute positions in the file, user block included. */
int32_t qh5_lossless_pack_v1_writer_append_shard(qh5_lossless_pack_v1_writer *writer, uint64_t ordinal,
                                                 const uint32_t *payload, size_t payload_words,
                                                 const uint32_t *header, size_t header_words,
                                                 uint64_t *payload_offset, uint64_t *header_offset,
                                                 char *message, size_t capacity);

/* Finishes the file, syncs it and gives it its name. The writer is gone either way; after a failure so is the file. */
int32_t qh5_lossless_pack_v1_writer_close(qh5_lossless_pack_v1_writer *writer, char *message, size_t capacity);

/* Gives up: removes only what this writer made. The writer is gone; null is allowed. */
void qh5_lossless_pack_v1_writer_abort(qh5_lossless_pack_v1_writer *writer);

#ifdef __cplusplus
}
#endif
#endif

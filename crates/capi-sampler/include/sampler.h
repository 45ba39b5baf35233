/* Endless batches of record indices: the functions of loaderx 0.5.0's libsampler, which this library can replace. */
#ifndef TENSILO_SAMPLER_H
#define TENSILO_SAMPLER_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct Sampler Sampler;

/* Mode 0 (SEQUENTIAL): indices ascend, wrap at the length, and advance by batch_size a call; the seed is not used.
 * Mode 1 (IID): each index is drawn by itself, by SFC64. Null for another mode, or a length of 0. */
Sampler *cinit(uint64_t length, uint64_t batch_size, uint8_t mode, uint64_t seed);

/* Ends a sampler; null does nothing. */
void cdeinit(Sampler *s);

/* Fills the next batch; a null sampler or array does nothing. One thread at a time. */
void cnext(Sampler *s, uint64_t *indices_ptr, size_t indices_len);

#ifdef __cplusplus
}
#endif

#endif

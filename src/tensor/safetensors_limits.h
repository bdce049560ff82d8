/* safetensors_limits.h - what the reader accepts, and so the most that the writer makes. */
#ifndef SAFETENSORS_LIMITS_H
#define SAFETENSORS_LIMITS_H

#define METADATA "__metadata__" /* the one key of a header that is no tensor */

enum { MAX_HEADER = 1 << 20, MAX_TENSORS = 4096, MAX_META = 64 };

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sanitized.h - is this a build with AddressSanitizer or ThreadSanitizer?
 *
 * Their shadow memory is larger than any limit on an address space, and they start threads and
 * map memory of their own: limits and filters that would prevent this are not applied.
 */
#ifndef BASE_SANITIZED_H
#define BASE_SANITIZED_H

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif

#endif

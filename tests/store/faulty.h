/*
 * faulty.h - a disk that is full from the n-th write on.
 *
 * A SQLite VFS in front of the usual one: it counts what is written, to any
 * file of the store, and fails from there on as a full disk does.
 */
#ifndef TESTS_STORE_FAULTY_H
#define TESTS_STORE_FAULTY_H

void faulty_install(void); /* once, before any store is opened */
/* n < 0: never. `code` is what the write gives: SQLITE_FULL, SQLITE_IOERR_WRITE. */
void faulty_from(int n, int code);
int faulty_hits(void); /* writes that failed since faulty_from() */

#endif

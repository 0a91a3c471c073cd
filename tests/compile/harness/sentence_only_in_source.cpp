// SPDX-License-Identifier: Apache-2.0
// expect: ddl: two is not three; write two
// finding: the sentence is absent

#ifdef DDL_WRONG
int two = three;  // the line the compiler would quote says: ddl: two is not three; write two
#else
static_assert(2 == 2);
#endif

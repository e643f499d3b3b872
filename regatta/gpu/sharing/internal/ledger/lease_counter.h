/* sharing/internal/ledger/lease_counter.h: the spare bytes of one lease: one word in memory that a
 * client and the daemon share. The client takes from it and gives back to it, the daemon fills it
 * and calls spare bytes back; all by compare-and-swap, so neither waits for the other and either
 * may die at any point. In use = leased (what the daemon wrote down) - spare.
 *
 * Beside the bytes (48 bits) the word has a generation (16 bits), which each change by the daemon
 * moves on. A daemon that starts again sees by it whether the last change it wrote down was made.
 */
#ifndef REGATTA_VGPU_LEDGER_LEASE_COUNTER_H
#define REGATTA_VGPU_LEDGER_LEASE_COUNTER_H

#include "regatta/gpu/sharing/internal/ledger/ledger.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
  unsigned long long word;
} regatta_lease_counter;

static inline unsigned long long regatta_lease_counter_read(const regatta_lease_counter* counter) {
  return __atomic_load_n(&counter->word, __ATOMIC_ACQUIRE);
}
static inline unsigned long long regatta_lease_word_spare(unsigned long long word) {
  return word & REGATTA_MEMORY_MAX;
}
static inline unsigned regatta_lease_word_generation(unsigned long long word) {
  return (unsigned)(word >> 48);
}
static inline unsigned long long regatta_lease_word(unsigned generation, unsigned long long spare) {
  return (unsigned long long)(generation & 0xffffU) << 48 | spare;
}

/* Client: takes `bytes` when as many are spare, else changes nothing and returns 0. */
static inline int regatta_lease_counter_take(regatta_lease_counter* counter,
                                             unsigned long long bytes) {
  unsigned long long word = regatta_lease_counter_read(counter);
  while (regatta_lease_word_spare(word) >= bytes) {
    if (__atomic_compare_exchange_n(&counter->word, &word, word - bytes, 1, __ATOMIC_ACQ_REL,
                                    __ATOMIC_ACQUIRE))
      return 1;
  }
  return 0;
}

/* Client: gives back what it took. */
static inline void regatta_lease_counter_give(regatta_lease_counter* counter,
                                              unsigned long long bytes) {
  __atomic_fetch_add(&counter->word, bytes, __ATOMIC_ACQ_REL);
}

/* Daemon: `spare` and the next generation in place of `word`, unless the client was faster (0). */
static inline int regatta_lease_counter_replace(regatta_lease_counter* counter,
                                                unsigned long long word, unsigned generation,
                                                unsigned long long spare) {
  return __atomic_compare_exchange_n(&counter->word, &word, regatta_lease_word(generation, spare),
                                     0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

#ifdef __cplusplus
}
#endif

#endif

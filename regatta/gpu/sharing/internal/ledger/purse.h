/* sharing/internal/ledger/purse.h: the spare bytes of one lease: one word in memory that a client
 * and the daemon share. The client takes from it and gives back to it, the daemon fills it and
 * calls spare bytes back; all by compare-and-swap, so neither waits for the other and either may
 * die at any point. In use = leased (what the daemon wrote down) - spare.
 *
 * Beside the bytes (48 bits) the word has a turn (16 bits), which each change by the daemon moves
 * on. A daemon that starts again sees by it whether the last change it wrote down was made.
 */
#ifndef REGATTA_VGPU_LEDGER_PURSE_H
#define REGATTA_VGPU_LEDGER_PURSE_H

#include "regatta/gpu/sharing/internal/ledger/ledger.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
  unsigned long long word;
} regatta_purse;

static inline unsigned long long regatta_purse_read(const regatta_purse* purse) {
  return __atomic_load_n(&purse->word, __ATOMIC_ACQUIRE);
}
static inline unsigned long long regatta_word_spare(unsigned long long word) {
  return word & REGATTA_MEMORY_MAX;
}
static inline unsigned regatta_word_turn(unsigned long long word) {
  return (unsigned)(word >> 48);
}
static inline unsigned long long regatta_word(unsigned turn, unsigned long long spare) {
  return (unsigned long long)(turn & 0xffffU) << 48 | spare;
}

/* Client: takes `bytes` when as many are spare, else changes nothing and returns 0. */
static inline int regatta_purse_take(regatta_purse* purse, unsigned long long bytes) {
  unsigned long long word = regatta_purse_read(purse);
  while (regatta_word_spare(word) >= bytes) {
    if (__atomic_compare_exchange_n(&purse->word, &word, word - bytes, 1, __ATOMIC_ACQ_REL,
                                    __ATOMIC_ACQUIRE))
      return 1;
  }
  return 0;
}

/* Client: gives back what it took. */
static inline void regatta_purse_give(regatta_purse* purse, unsigned long long bytes) {
  __atomic_fetch_add(&purse->word, bytes, __ATOMIC_ACQ_REL);
}

/* Daemon: `spare` and the next turn in place of `word`, unless the client was faster (0). */
static inline int regatta_purse_replace(regatta_purse* purse, unsigned long long word,
                                        unsigned turn, unsigned long long spare) {
  return __atomic_compare_exchange_n(&purse->word, &word, regatta_word(turn, spare), 0,
                                     __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

#ifdef __cplusplus
}
#endif

#endif

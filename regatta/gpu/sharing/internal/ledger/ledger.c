#include "regatta/gpu/sharing/internal/ledger/ledger.h"

typedef unsigned long long u64;

u64 regatta_account_room(const regatta_account* account) {
  return account->quota > account->leased ? account->quota - account->leased : 0;
}

u64 regatta_lease_size(const regatta_account* account, u64 held, u64 least) {
  const u64 room = regatta_account_room(account);
  u64 size = held > REGATTA_LEASE_LEAST ? held : REGATTA_LEASE_LEAST;
  if (least > room) return 0;
  if (size > room / 8) size = room / 8;
  return size > least ? size : least;
}

int regatta_lease_grow(regatta_account* account, u64* held, u64 bytes) {
  if (bytes > regatta_account_room(account)) return 0;
  account->leased += bytes;
  *held += bytes;
  return 1;
}

int regatta_lease_shrink(regatta_account* account, u64* held, u64 bytes) {
  if (bytes > *held) return 0;
  account->leased -= bytes;
  *held -= bytes;
  return 1;
}

u64 regatta_lease_reclaim(regatta_account* account, u64* held) {
  const u64 bytes = *held;
  account->leased -= bytes;
  *held = 0;
  return bytes;
}

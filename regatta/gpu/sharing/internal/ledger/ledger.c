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

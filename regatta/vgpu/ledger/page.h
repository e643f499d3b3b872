/* vgpu/ledger/page.h: the two pages that the daemon shares with processes. Each has 4096 bytes and
 * is a memory file that nobody can shorten.
 *
 * The tenant's page says what the tenant may have and has, so that a process sees it without a
 * call. Tenants hold a descriptor of it from `regatta gpu run` on, by inheritance: it is what makes
 * a process belong to the tenant. F_SEAL_FUTURE_WRITE: nobody but the daemon can write to it.
 *
 * The purses' page is of one client, which writes to it too: its purse on each device.
 */
#ifndef REGATTA_VGPU_LEDGER_PAGE_H
#define REGATTA_VGPU_LEDGER_PAGE_H

#include "regatta/vgpu/ledger/purse.h"

#define REGATTA_PAGE_SIZE 4096
#define REGATTA_TENANT_MAGIC 0x746e657461676572ULL
#define REGATTA_TENANT_PAGE_NAME "regatta-gpu-tenant"
#define REGATTA_PURSES_PAGE_NAME "regatta-gpu-purses"

typedef struct {
  unsigned long long magic;
  unsigned version;
  unsigned part_ppm;       /* of the device's time, under the policy of now; atomic, as all below */
  unsigned char token[16]; /* says to the daemon which tenant asks */
  char name[48];
  char socket[112];
  unsigned long long quota[REGATTA_DEVICES_MAX];
  unsigned long long leased[REGATTA_DEVICES_MAX];
} regatta_tenant_page;

typedef struct {
  regatta_purse purses[REGATTA_DEVICES_MAX];
} regatta_purses_page;

#ifdef __cplusplus
static_assert(sizeof(regatta_tenant_page) == 448 && sizeof(regatta_purses_page) == 128,
              "processes of another build read these pages");
#endif

#endif

// vgpu/remote/exports.h: what the client library shows to programs.
#pragma once

#include "regatta/vgpu/remote/caller.h"

// NOLINTBEGIN(readability-identifier-naming): the names are the driver's
extern "C" {
#define REMOTE_TYPE(symbol)                       \
  decltype(regatta::vgpu::remote::Caller<         \
           regatta::vgpu::remote::Number::symbol, \
           regatta::vgpu::remote::Row<regatta::vgpu::remote::Number::symbol>::Arguments>::call)
#define CALL(base, symbol, ...) REMOTE_TYPE(symbol) symbol;
#define TWIN CALL
#define HAND CALL
#define LOCAL(base, symbol, since, ...) CUresult symbol(__VA_ARGS__);
#define LOCAL_TWIN LOCAL
#define REFUSED(base, symbol, since) CUresult symbol();
#define REFUSED_TWIN REFUSED
#include "regatta/vgpu/remote/calls.inc"
}
// NOLINTEND(readability-identifier-naming)

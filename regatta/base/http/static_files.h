// http/static_files.h: the files of a folder as responses, kept in memory.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "regatta/base/core/result.h"
#include "regatta/base/http/http_message.h"

namespace regatta::http {

// A client reads only what was in the folder when it was loaded, so no path leads out of it.
class StaticFiles {
 public:
  // All plain files below `folder`; links are left out. FILE.br and FILE.gz are FILE compressed,
  // for clients that take it. kNotFound without index.html; kExhausted beyond 64 MiB.
  static Result<StaticFiles> load(const std::string& folder);

  // The answer to a GET or HEAD; nothing where there is no such file. A path that names no file and
  // that a browser opens as a page gets index.html, which finds its view by the path. Files below
  // assets/ whose name has a hash of their content (NAME-HASH8.SUFFIX) may be kept for a year; the
  // others are asked for again, and answered 304 while they are the same.
  std::optional<Response> respond(const Request& request) const;

 private:
  struct File {
    std::string type;
    std::string plain;
    std::string gzip;    // empty: there is none
    std::string brotli;  // the same
    std::string tag;     // of the plain content
  };
  std::map<std::string, File> files_;  // by path, which begins with '/'
};

// Whether the value of Accept-Encoding takes `coding`. Source: RFC 9110, section 12.5.3.
bool takes_encoding(std::string_view accepted, std::string_view coding);

}  // namespace regatta::http

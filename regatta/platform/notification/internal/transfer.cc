#include "regatta/platform/notification/internal/transfer.h"

#include <algorithm>
#include <ctime>
#include <memory>
#include <string>

#include <curl/curl.h>
#include <fmt/format.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "regatta/base/core/text.h"

namespace regatta::notification {
namespace {

constexpr long kBadRequest = 400;
constexpr long kServerError = 500;
constexpr long kRequestTimeout = 408;
constexpr long kTooMany = 429;
constexpr long kMailRefused = 500;
constexpr double kMsPerSecond = 1000;
constexpr std::size_t kSubjectMost = 200;

struct CurlEnd {
  void operator()(CURL* handle) const { ::curl_easy_cleanup(handle); }
  void operator()(curl_slist* list) const { ::curl_slist_free_all(list); }
};
using CurlHandle = std::unique_ptr<CURL, CurlEnd>;

// A list of texts as libcurl wants it.
class TextList {
 public:
  void add(const std::string& text) {
    curl_slist* const longer = ::curl_slist_append(list_.get(), text.c_str());
    if (longer == nullptr) return;
    static_cast<void>(list_.release());
    list_.reset(longer);
  }
  curl_slist* get() const { return list_.get(); }

 private:
  std::unique_ptr<curl_slist, CurlEnd> list_;
};

std::size_t drop(char* /*data*/, std::size_t size, std::size_t count, void* /*to*/) {
  return size * count;
}

int check_stop(void* stops, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  return static_cast<const std::atomic<bool>*>(stops)->load() ? 1 : 0;
}

struct Upload {
  std::string text;
  std::size_t sent = 0;
};
std::size_t read_upload(char* to, std::size_t size, std::size_t count, void* from) {
  Upload& upload = *static_cast<Upload*>(from);
  const std::size_t length = std::min(size * count, upload.text.size() - upload.sent);
  std::copy_n(upload.text.data() + upload.sent, length, to);
  upload.sent += length;
  return length;
}

CurlHandle handle_for(const std::string& url, const std::string& ca, Seconds limit,
                      const std::atomic<bool>& stops) {
  static const bool is_started = ::curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK;
  CurlHandle curl(is_started ? ::curl_easy_init() : nullptr);
  if (curl == nullptr) return curl;
  ::curl_easy_setopt(curl.get(), CURLOPT_URL, url.c_str());
  ::curl_easy_setopt(curl.get(), CURLOPT_NOSIGNAL, 1L);
  ::curl_easy_setopt(curl.get(), CURLOPT_TIMEOUT_MS, static_cast<long>(limit.value * kMsPerSecond));
  ::curl_easy_setopt(curl.get(), CURLOPT_WRITEFUNCTION, &drop);
  ::curl_easy_setopt(curl.get(), CURLOPT_NOPROGRESS, 0L);
  ::curl_easy_setopt(curl.get(), CURLOPT_XFERINFOFUNCTION, &check_stop);
  ::curl_easy_setopt(curl.get(), CURLOPT_XFERINFODATA, &stops);
  ::curl_easy_setopt(curl.get(), CURLOPT_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_2));
  // The certificates of the file alone, not those of the system too.
  if (!ca.empty()) {
    ::curl_easy_setopt(curl.get(), CURLOPT_CAINFO, ca.c_str());
    ::curl_easy_setopt(curl.get(), CURLOPT_CAPATH, nullptr);
  }
  return curl;
}

Error no_curl() {
  return {Code::kUnavailable, "libcurl cannot be used"};
}

// Control bytes would begin another header.
std::string one_line(std::string_view text, std::size_t most) {
  std::string line(text.substr(0, most));
  for (char& letter : line)
    if (static_cast<unsigned char>(letter) < ' ' || letter == 127) letter = ' ';
  return line;
}

std::string mail_date() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  char text[64] = {};
  std::strftime(text, sizeof text, "%a, %d %b %Y %H:%M:%S +0000", &parts);
  return text;
}

}  // namespace

std::string signature_of(std::string_view secret, std::string_view body) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned length = 0;
  ::HMAC(::EVP_sha256(), secret.data(), static_cast<int>(secret.size()),
         reinterpret_cast<const unsigned char*>(body.data()), body.size(), digest, &length);
  std::string text = "sha256=";
  for (unsigned i = 0; i < length; ++i)
    text += fmt::format("{:02x}", digest[i]);
  return text;
}

Status post(const Webhook& webhook, const Message& message, Seconds limit,
            const std::atomic<bool>& stops) {
  const CurlHandle curl = handle_for(webhook.url, webhook.ca, limit, stops);
  if (curl == nullptr) return no_curl();
  TextList headers;
  headers.add("Content-Type: application/json");
  headers.add("X-Regatta-Id: " + one_line(message.id, kSubjectMost));
  if (!webhook.secret.empty())
    headers.add("X-Regatta-Signature: " + signature_of(webhook.secret, message.json));
  ::curl_easy_setopt(curl.get(), CURLOPT_PROTOCOLS_STR, "http,https");
  ::curl_easy_setopt(curl.get(), CURLOPT_HTTPHEADER, headers.get());
  ::curl_easy_setopt(curl.get(), CURLOPT_POSTFIELDS, message.json.data());
  ::curl_easy_setopt(curl.get(), CURLOPT_POSTFIELDSIZE_LARGE,
                     static_cast<curl_off_t>(message.json.size()));
  const CURLcode result = ::curl_easy_perform(curl.get());
  if (result != CURLE_OK) return Error{Code::kUnavailable, ::curl_easy_strerror(result)};
  long status = 0;
  ::curl_easy_getinfo(curl.get(), CURLINFO_RESPONSE_CODE, &status);
  if (status >= 200 && status < 300) return {};
  const bool is_refused = status >= kBadRequest && status < kServerError &&
                          status != kRequestTimeout && status != kTooMany;
  return Error{is_refused ? Code::kInvalidInput : Code::kUnavailable,
               fmt::format("it answers with status {}", status)};
}

std::string mail_text(const MailServer& server, const Message& message, std::string_view date) {
  std::string to;
  for (const std::string& address : server.to)
    to += (to.empty() ? "" : ", ") + address;
  std::string text = fmt::format(
      "Date: {}\r\nFrom: {}\r\nTo: {}\r\nSubject: {}\r\nX-Regatta-Id: {}\r\nMIME-Version: 1.0\r\n"
      "Content-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: 8bit\r\n\r\n",
      date, one_line(server.from, kSubjectMost), to, one_line(message.subject, kSubjectMost),
      one_line(message.id, kSubjectMost));
  for (const std::string& line : split(message.text, '\n'))
    text += one_line(line, 900) + "\r\n";
  return text;
}

Status mail(const MailServer& server, const Message& message, Seconds limit,
            const std::atomic<bool>& stops) {
  const CurlHandle curl = handle_for(server.url, server.ca, limit, stops);
  if (curl == nullptr) return no_curl();
  TextList receivers;
  for (const std::string& address : server.to)
    receivers.add("<" + address + ">");
  Upload upload{.text = mail_text(server, message, mail_date())};
  const std::string from = "<" + server.from + ">";
  ::curl_easy_setopt(curl.get(), CURLOPT_PROTOCOLS_STR, "smtp,smtps");
  ::curl_easy_setopt(curl.get(), CURLOPT_USE_SSL, static_cast<long>(CURLUSESSL_ALL));
  ::curl_easy_setopt(curl.get(), CURLOPT_MAIL_FROM, from.c_str());
  ::curl_easy_setopt(curl.get(), CURLOPT_MAIL_RCPT, receivers.get());
  ::curl_easy_setopt(curl.get(), CURLOPT_READFUNCTION, &read_upload);
  ::curl_easy_setopt(curl.get(), CURLOPT_READDATA, &upload);
  ::curl_easy_setopt(curl.get(), CURLOPT_UPLOAD, 1L);
  if (!server.user.empty()) {
    ::curl_easy_setopt(curl.get(), CURLOPT_USERNAME, server.user.c_str());
    ::curl_easy_setopt(curl.get(), CURLOPT_PASSWORD, server.password.c_str());
  }
  const CURLcode result = ::curl_easy_perform(curl.get());
  if (result == CURLE_OK) return {};
  long status = 0;
  ::curl_easy_getinfo(curl.get(), CURLINFO_RESPONSE_CODE, &status);
  return Error{status >= kMailRefused ? Code::kInvalidInput : Code::kUnavailable,
               fmt::format("{} (status {})", ::curl_easy_strerror(result), status)};
}

}  // namespace regatta::notification

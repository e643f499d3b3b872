// notification/notifier.h: sends messages to people by webhooks and mail, in a thread of its own:
// again with growing pauses while a receiver is away, and never more than a bound waits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/base/core/units.h"

namespace regatta::notification {

// POST of JSON with the headers X-Regatta-Id and X-Regatta-Signature: "sha256=" and the HMAC of the
// body in hex (RFC 2104), where there is a secret.
struct Webhook {
  std::string url;     // https://..., or http:// to loopback
  std::string secret;  // "": without a signature
  std::string ca;      // path of the certificates that are trusted; "": those of the system
};

struct MailServer {
  std::string url;  // smtp://host:port with STARTTLS, which must succeed, or smtps://host:port
  std::string from;
  std::vector<std::string> to;
  std::string user;  // "": without a login
  std::string password;
  std::string ca;
};

struct NotifierOptions {
  std::vector<Webhook> webhooks;
  std::vector<MailServer> mails;
  std::size_t waiting_max = 1000;  // messages of a receiver; the newest beyond are given up
  int tries_max = 12;              // of a message, about an hour with these pauses
  Seconds first_pause{1};          // doubles after each failure
  Seconds longest_pause{600};
  Seconds limit{20};  // of one try
};

// {"webhooks": [{"url", "secret_file", "ca"}], "mails": [{"url", "from", "to", "user",
// "password_file", "ca"}]} as YAML; secrets are the first lines of their files. kInvalidInput names
// `name`, line, key and remedy; other errors name the file that cannot be read.
Result<NotifierOptions> read_notifier_options(std::string_view text, const std::string& name);

struct Message {
  std::string id;       // receivers that get it twice know it by this
  std::string subject;  // one line
  std::string text;
  std::string json;
};

// "sha256=" and the HMAC-SHA256 of `body` in hex.
std::string signature_of(std::string_view secret, std::string_view body);
// The pause after the `failures`-th failure (from 1) in a row.
Seconds pause_after(int failures, const NotifierOptions& options);

struct NotifierStats {
  long long sent = 0;      // to one receiver each
  long long failures = 0;  // tries
  long long given_up = 0;
};

class Notifier {
 public:
  explicit Notifier(NotifierOptions options);
  ~Notifier();  // ends a try that is under way within a second; what waits is not sent
  Notifier(const Notifier&) = delete;
  Notifier& operator=(const Notifier&) = delete;

  // `done`: called once in the notifier's thread when every receiver has it or it was given up for
  // them; not when the notifier is destroyed first.
  void send(Message message, std::function<void()> done);
  NotifierStats stats() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace regatta::notification

// The file that says who is told.
#include <string>
#include <utility>

#include <fmt/format.h>

#include "regatta/base/core/text.h"
#include "regatta/base/core/yaml_map.h"
#include "regatta/base/os/file.h"
#include "regatta/platform/notification/notifier.h"

namespace regatta::notification {
namespace {

Result<std::string> read_secret(const std::string& path) {
  if (path.empty()) return std::string();
  REGATTA_TRY(text, os::read_file(path));
  return text.substr(0, text.find('\n'));
}

std::vector<YamlMap> maps_of(const YamlMap& root, std::string_view key) {
  return root.has(key) ? root.maps(key) : std::vector<YamlMap>();
}

bool is_loopback(std::string_view url) {
  for (const std::string_view host : {"http://127.0.0.1", "http://localhost", "http://[::1]"}) {
    if (!url.starts_with(host)) continue;
    const std::string_view rest = url.substr(host.size());
    const std::string_view port = rest.starts_with(':') ? rest.substr(1, rest.find('/') - 1) : "";
    return rest.find('@') == std::string_view::npos &&
           (rest.empty() || rest.front() == '/' || rest.front() == ':') &&
           port.find_first_not_of("0123456789") == std::string_view::npos;
  }
  return false;
}

bool is_address(std::string_view text) {
  return text.find('@') != std::string_view::npos &&
         text.find_first_of(" <>\r\n,") == std::string_view::npos;
}

}  // namespace

Result<NotifierOptions> read_notifier_options(std::string_view text, const std::string& name) {
  REGATTA_TRY(document, YamlDocument::parse(std::string(text), name));
  const YamlMap& root = document.root();
  root.allow({"webhooks", "mails"});
  NotifierOptions options;
  std::vector<std::string> files;
  for (const YamlMap& item : maps_of(root, "webhooks")) {
    item.allow({"url", "secret_file", "ca"});
    Webhook& webhook = options.webhooks.emplace_back();
    webhook.url = item.text("url");
    webhook.ca = item.text("ca", "");
    files.push_back(item.text("secret_file", ""));
    if (!webhook.url.starts_with("https://") && !is_loopback(webhook.url))
      item.fail("url", "no https:// address; give one");
  }
  for (const YamlMap& item : maps_of(root, "mails")) {
    item.allow({"url", "from", "to", "user", "password_file", "ca"});
    MailServer& server = options.mails.emplace_back();
    server.url = item.text("url");
    server.from = item.text("from");
    server.to = item.texts("to");
    server.user = item.text("user", "");
    server.ca = item.text("ca", "");
    files.push_back(item.text("password_file", ""));
    if (!server.url.starts_with("smtp://") && !server.url.starts_with("smtps://"))
      item.fail("url", "no smtp:// or smtps:// address; give one");
    for (const std::string& address : server.to)
      if (!is_address(address)) item.fail("to", "no address of mail; give NAME@HOST");
    if (!is_address(server.from)) item.fail("from", "no address of mail; give NAME@HOST");
  }
  REGATTA_TRY_DO(document.status());
  for (std::size_t i = 0; i < options.webhooks.size(); ++i) {
    REGATTA_TRY(secret, read_secret(files[i]));
    options.webhooks[i].secret = std::move(secret);
  }
  for (std::size_t i = 0; i < options.mails.size(); ++i) {
    REGATTA_TRY(password, read_secret(files[options.webhooks.size() + i]));
    options.mails[i].password = std::move(password);
  }
  return options;
}

}  // namespace regatta::notification

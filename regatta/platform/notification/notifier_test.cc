#include "regatta/platform/notification/notifier.h"

#include <atomic>

#include <gmock/gmock.h>

#include "regatta/base/os/clock.h"
#include "regatta/base/os/file.h"
#include "regatta/platform/notification/internal/transfer.h"

namespace regatta::notification {
namespace {

using testing::HasSubstr;

// RFC 4231, test case 2.
TEST(Signature, IsTheHmacOfTheBody) {
  EXPECT_EQ(signature_of("Jefe", "what do ya want for nothing?"),
            "sha256=5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
}

TEST(PauseAfter, DoublesUpToALimit) {
  const NotifierOptions options;
  EXPECT_EQ(pause_after(1, options), Seconds{1});
  EXPECT_EQ(pause_after(2, options), Seconds{2});
  EXPECT_EQ(pause_after(5, options), Seconds{16});
  EXPECT_EQ(pause_after(11, options), Seconds{600});
  EXPECT_EQ(pause_after(1000, options), Seconds{600});
}

TEST(MailText, LetsNoMessageAddAHeader) {
  const MailServer server{.from = "regatta@example", .to = {"a@example", "b@example"}};
  const std::string text = mail_text(
      server, {.id = "1", .subject = "bad\r\nBcc: c@example", .text = "one\ntwo"}, "today");
  EXPECT_THAT(text, HasSubstr("To: a@example, b@example\r\n"));
  EXPECT_THAT(text, HasSubstr("Subject: bad  Bcc: c@example\r\n"));
  EXPECT_THAT(text, HasSubstr("\r\n\r\none\r\ntwo\r\n"));
}

TEST(NotifierOptions, AreReadWithSecretsFromFiles) {
  const std::string secret = testing::TempDir() + "notifier_secret";
  ASSERT_TRUE(os::write_file(secret, "s3cret\nmore\n"));
  const auto options =
      read_notifier_options("webhooks: [{url: 'https://example/hook', secret_file: " + secret +
                                "}]\nmails: [{url: 'smtp://mail.example:587', from: "
                                "r@example, to: [a@example]}]\n",
                            "alerts.yaml");
  ASSERT_TRUE(options) << options.error().message;
  EXPECT_EQ(options->webhooks.at(0).secret, "s3cret");
  EXPECT_THAT(options->mails.at(0).to, testing::ElementsAre("a@example"));
}

TEST(NotifierOptions, RefuseAddressesThatAreNotSafe) {
  const auto error = [](const char* text) {
    return read_notifier_options(text, "alerts.yaml").error().message;
  };
  EXPECT_THAT(error("webhooks: [{url: 'http://example/hook'}]"),
              HasSubstr("alerts.yaml:1: webhooks[0].url: no https:// address"));
  EXPECT_THAT(error("mails: [{url: 'smtp://h', from: a@b, to: [\"x@y>,<z@y\"]}]"),
              HasSubstr("no address of mail"));
  EXPECT_THAT(error("webhook: []"), HasSubstr("webhooks"));
}

// Nobody listens on the port: every try fails at once, and the third is the last.
TEST(Notifier, GivesUpAfterItsTriesAndTellsOnce) {
  NotifierOptions options;
  options.webhooks = {{.url = "http://127.0.0.1:1/"}};
  options.tries_max = 3;
  options.first_pause = Seconds{0.01};
  Notifier notifier(options);
  std::atomic<int> done = 0;
  notifier.send({.id = "1", .json = "{}"}, [&] { ++done; });
  for (int round = 0; round < 500 && done == 0; ++round)
    os::sleep_for(Seconds{0.01});
  EXPECT_EQ(done, 1);
  EXPECT_EQ(notifier.stats().failures, 3);
  EXPECT_EQ(notifier.stats().given_up, 1);
}

TEST(Notifier, KeepsNoMoreThanItsBound) {
  NotifierOptions options;
  options.webhooks = {{.url = "http://127.0.0.1:1/"}};
  options.waiting_max = 2;
  options.first_pause = Seconds{60};
  Notifier notifier(options);
  for (int i = 0; i < 5; ++i)
    notifier.send({.id = std::to_string(i), .json = "{}"}, {});
  EXPECT_GE(notifier.stats().given_up, 3);
}

}  // namespace
}  // namespace regatta::notification

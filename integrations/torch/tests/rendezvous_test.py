"""What a rank says of itself when the ranks meet."""
import os
import unittest
from unittest import mock

import ranks  # noqa: F401 (skips where torch is missing)
from regatta_torch import rendezvous


class Address(unittest.TestCase):
    def refused(self, address):
        with mock.patch.dict(os.environ, {"REGATTA_ADDRESS": address}):
            with self.assertRaises(RuntimeError) as caught:
                rendezvous.address()
        return str(caught.exception)

    def test_given_address_of_this_machine_is_taken(self):
        with mock.patch.dict(os.environ, {"REGATTA_ADDRESS": "127.0.0.1"}):
            self.assertEqual(rendezvous.address(), "127.0.0.1")

    def test_address_that_is_no_number_is_refused_by_the_name_of_the_variable(self):
        self.assertIn("REGATTA_ADDRESS 'banana' is no address in numbers", self.refused("banana"))

    def test_address_of_another_machine_is_refused(self):
        self.assertIn("REGATTA_ADDRESS 203.0.113.9 is no address of this machine", self.refused("203.0.113.9"))


class Server(unittest.TestCase):
    def test_text_is_short_and_the_same_each_time(self):
        with mock.patch.dict(os.environ):
            os.environ.pop("REGATTA_SERVER", None)
            self.assertEqual(rendezvous.server(), rendezvous.server())
            self.assertRegex(rendezvous.server(), r"^.+-[0-9a-f]{6}$")


if __name__ == "__main__":
    unittest.main()

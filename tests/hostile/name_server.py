# SPDX-License-Identifier: MIT
"""A name server that writes down every question, by UDP and TCP. What a guest smuggles into a name would be seen here."""

import socket
import struct
import threading

# Answers for names below allowed.test: where an allowed name leads inside, the broker must not follow.
ANSWERS = {
    b"loopback": bytes([127, 0, 0, 1]),
    b"metadata": bytes([169, 254, 169, 254]),
    b"private": bytes([10, 0, 0, 1]),
    b"mapped": bytes(10) + b"\xff\xff" + bytes([127, 0, 0, 1]),
}


class NameServer:
    def __init__(self, address):
        self.address, self.questions, self.sockets = address, [], []
        self.udp = self._open(socket.SOCK_DGRAM)
        self.tcp = self._open(socket.SOCK_STREAM)
        self.tcp.listen(16)
        threading.Thread(target=self._serve_udp, daemon=True).start()
        threading.Thread(target=self._serve_tcp, daemon=True).start()

    def _open(self, kind):
        opened = socket.socket(socket.AF_INET, kind)
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        opened.bind((self.address, 53))
        self.sockets.append(opened)
        return opened

    def close(self):
        for opened in self.sockets:
            opened.close()

    def _answer(self, question):
        """Reads the one question of a query and answers it: an address, or that there is no such name."""
        labels, at = [], 12
        while question[at]:
            labels.append(question[at + 1:at + 1 + question[at]])
            at += 1 + question[at]
        kind = struct.unpack(">H", question[at + 1:at + 3])[0]
        self.questions.append(b".".join(labels).decode(errors="replace").lower())
        asked = question[12:at + 5]
        data = ANSWERS.get(labels[0]) if labels[-2:] == [b"allowed", b"test"] else None
        if data is None:
            return question[:2] + b"\x81\x83" + b"\0\x01\0\0\0\0\0\0" + asked
        if kind != (28 if len(data) == 16 else 1):
            return question[:2] + b"\x81\x80" + b"\0\x01\0\0\0\0\0\0" + asked
        record = b"\xc0\x0c" + struct.pack(">HHIH", kind, 1, 0, len(data)) + data
        return question[:2] + b"\x81\x80" + b"\0\x01\0\x01\0\0\0\0" + asked + record

    def _serve_udp(self):
        while True:
            try:
                question, sender = self.udp.recvfrom(4096)
                self.udp.sendto(self._answer(question), sender)
            except OSError:
                return
            except IndexError:
                self.questions.append("not a question")

    def _serve_tcp(self):
        while True:
            try:
                connection, _ = self.tcp.accept()
            except OSError:
                return
            # Nobody here has a reason to come by TCP.
            self.questions.append("by TCP")
            connection.close()

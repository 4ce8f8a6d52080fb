"""Reads a mailbox by IMAP and writes its mails as a JSON list: header fields, text, HTML, and whether the signature is valid.

Usage: read_mailbox.py HOST PORT USER PASSWORD FOLDER RECORD, where RECORD is the text of the key's DNS record.
"""
import imaplib
import json
import sys
from email import message_from_bytes, policy

import dkim


def part(mail, kind):
    found = mail.get_body(preferencelist=(kind,))
    return found.get_content().replace("\r\n", "\n") if found is not None else ""


def describe(raw, record):
    mail = message_from_bytes(raw, policy=policy.default)
    names = []

    def lookup(name, timeout=5):
        names.append(name.decode())
        return record.encode()

    header = {}
    for name, value in mail.items():
        header.setdefault(name.lower(), []).append(str(value).strip())
    signed = ""
    for field in header.get("dkim-signature", []):
        for tag in field.split(";"):
            name, _, value = tag.strip().partition("=")
            if name == "h":
                signed = "".join(value.split()).lower()
    return {"header": header, "text": part(mail, "plain"), "html": part(mail, "html"), "signed": signed.split(":"),
            "valid": dkim.verify(raw, dnsfunc=lookup), "key_name": names, "defects": [str(d) for d in mail.defects]}


def main():
    host, port, user, password, folder, record = sys.argv[1:]
    box = imaplib.IMAP4(host, int(port))
    box.login(user, password)
    status, _ = box.select(folder, readonly=True)
    mails = []
    if status == "OK":
        _, found = box.search(None, "ALL")
        for number in found[0].split():
            _, data = box.fetch(number, "(BODY.PEEK[])")
            mails.append(describe(data[0][1], record))
    box.logout()
    json.dump(mails, sys.stdout)


main()

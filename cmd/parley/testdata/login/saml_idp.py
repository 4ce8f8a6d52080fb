"""A SAML 2.0 identity provider for tests, made with pysaml2: python3 saml_idp.py PORT FOLDER ADDRESS_OF_OUR_METADATA

FOLDER has cert.pem and key.pem; the provider writes its metadata to idp.xml there. GET /sso?...&person=NAME logs a person
in and answers with the form that the browser would send; encrypt=1 encrypts the assertion.
"""

import http.server
import pathlib
import sys
import urllib.parse
import urllib.request

import saml2.entity
import saml2.sigver
from saml2 import BINDING_HTTP_POST, BINDING_HTTP_REDIRECT
from saml2.config import IdPConfig
from saml2.metadata import entity_descriptor
from saml2.saml import NAME_FORMAT_URI, NAMEID_FORMAT_PERSISTENT, NameID
from saml2.server import Server

port, folder, ours = int(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3]
base = f"http://127.0.0.1:{port}"


# By itself pysaml2 encrypts with Triple DES, which is not accepted.
AES, OAEP = "http://www.w3.org/2001/04/xmlenc#aes256-cbc", "http://www.w3.org/2001/04/xmlenc#rsa-oaep-mgf1p"
encryption_part, encrypt = saml2.entity.pre_encryption_part, saml2.sigver.CryptoBackendXmlSec1.encrypt_assertion
saml2.entity.pre_encryption_part = lambda **more: encryption_part(msg_enc=AES, key_enc=OAEP, **more)
saml2.sigver.CryptoBackendXmlSec1.encrypt_assertion = lambda *args: encrypt(
    *args[:4], "aes-256", *args[5:]
)


def config(metadata):
    return {
        "entityid": base + "/metadata",
        "xmlsec_binary": "/usr/bin/xmlsec1",
        "key_file": str(folder / "key.pem"),
        "cert_file": str(folder / "cert.pem"),
        "metadata": metadata,
        "signing_algorithm": "http://www.w3.org/2001/04/xmldsig-more#rsa-sha256",
        "digest_algorithm": "http://www.w3.org/2001/04/xmlenc#sha256",
        "service": {
            "idp": {
                "endpoints": {
                    "single_sign_on_service": [(base + "/sso", BINDING_HTTP_REDIRECT)],
                    "single_logout_service": [(base + "/slo", BINDING_HTTP_REDIRECT)],
                },
                "name_id_format": [NAMEID_FORMAT_PERSISTENT],
                "policy": {"default": {"lifetime": {"minutes": 5}, "name_form": NAME_FORMAT_URI}},
                "sign_response": True,
                "sign_assertion": True,
            }
        },
    }


class Provider(http.server.BaseHTTPRequestHandler):
    server_version = "provider"

    def do_GET(self):
        query = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(self.path).query))
        our_metadata = urllib.request.urlopen(ours).read().decode()
        idp = Server(config=IdPConfig().load(config({"inline": [our_metadata]})))
        request = idp.parse_authn_request(query["SAMLRequest"], BINDING_HTTP_REDIRECT)
        name = query.get("person", "jane")
        answer = idp.create_authn_response(
            {"mail": [name + "@example.net"], "displayName": ["Real " + name], "eduPersonAffiliation": ["staff"]},
            name_id=NameID(format=NAMEID_FORMAT_PERSISTENT, text="persistent-" + name),
            authn={"class_ref": "urn:oasis:names:tc:SAML:2.0:ac:classes:Password", "authn_auth": base},
            encrypt_assertion=query.get("encrypt") == "1",
            encrypt_assertion_self_contained=True,
            sign_alg="http://www.w3.org/2001/04/xmldsig-more#rsa-sha256",
            digest_alg="http://www.w3.org/2001/04/xmlenc#sha256",
            **idp.response_args(request.message),
        )
        form = idp.apply_binding(
            BINDING_HTTP_POST, str(answer), request.message.assertion_consumer_service_url, query["RelayState"], True
        )["data"]
        body = (form if isinstance(form, str) else "".join(form)).encode()
        self.send_response(200)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


(folder / "idp.xml").write_text(str(entity_descriptor(IdPConfig().load(config({})))))
server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Provider)
print("listening", flush=True)
server.serve_forever()

// A certificate for servers of the scenes.
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';

// withCertificate runs a scene with the files of a certificate that this script makes.
export async function withCertificate(body) {
  const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'parley-certificate-'));
  const [key, certificate] = [path.join(dir, 'key.pem'), path.join(dir, 'certificate.pem')];
  try {
    execFileSync('openssl', ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '2',
      '-keyout', key, '-out', certificate, '-subj', '/CN=chat.localhost',
      '-addext', 'subjectAltName=DNS:chat.localhost,DNS:*.chat.localhost'], { stdio: 'ignore' });
    await body(key, certificate);
  } finally {
    fs.rmSync(dir, { recursive: true, force: true });
  }
}

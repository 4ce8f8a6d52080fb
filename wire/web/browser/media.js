// Small files for messages: pictures, sounds, and their upload.
import zlib from 'node:zlib';

// png returns a picture of one colour, 120 by 80 pixels.
export function png(red, green, blue) {
  const [width, height] = [120, 80];
  const head = Buffer.alloc(13);
  head.writeUInt32BE(width, 0);
  head.writeUInt32BE(height, 4);
  head.set([8, 2, 0, 0, 0], 8); // eight bits for each of three colours
  const line = Buffer.concat([Buffer.from([0]), Buffer.alloc(width * 3, Buffer.from([red, green, blue]))]);
  const chunk = (name, data) => {
    const body = Buffer.concat([Buffer.from(name), data]);
    const out = Buffer.alloc(body.length + 8);
    out.writeUInt32BE(data.length, 0);
    body.copy(out, 4);
    out.writeUInt32BE(zlib.crc32(body), body.length + 4);
    return out;
  };
  return Buffer.concat([Buffer.from('89504e470d0a1a0a', 'hex'), chunk('IHDR', head),
    chunk('IDAT', zlib.deflateSync(Buffer.concat(Array(height).fill(line)))), chunk('IEND', Buffer.alloc(0))]);
}

const RATE = 8000; // samples a second, of one byte

// wav returns a sound of silence.
export function wav(seconds) {
  const length = RATE * seconds;
  const out = Buffer.alloc(44 + length);
  out.write('RIFF', 0); out.writeUInt32LE(36 + length, 4); out.write('WAVEfmt ', 8); out.writeUInt32LE(16, 16);
  out.writeUInt16LE(1, 20); out.writeUInt16LE(1, 22); out.writeUInt32LE(RATE, 24); out.writeUInt32LE(RATE, 28);
  out.writeUInt16LE(1, 32); out.writeUInt16LE(8, 34); out.write('data', 36); out.writeUInt32LE(length, 40);
  return out.fill(128, 44);
}

// upload sends a file as an app of the user does, and returns its address.
export async function upload(server, email, name, type, data) {
  const form = new FormData();
  form.set('file', new Blob([data], { type }), name);
  const answer = await fetch(`http://127.0.0.1:${server.port}/api/v1/user_uploads`, { method: 'POST', body: form,
    headers: { authorization: await server.authorization(email) } });
  const { url, msg } = await answer.json();
  if (!url) throw new Error(`upload of ${name}: ${msg}`);
  return url;
}

// An OpenID Connect provider for make login: node oidc_provider.mjs PORT REDIRECT. Everyone logs in with any name; the
// name is the subject.
import Provider from 'oidc-provider';

const [port, redirect] = process.argv.slice(2);
const issuer = `http://127.0.0.1:${port}`;
const provider = new Provider(issuer, {
  clients: [{
    client_id: 'parley', client_secret: 'real-secret', redirect_uris: [redirect],
    grant_types: ['authorization_code'], response_types: ['code'],
  }],
  claims: { openid: ['sub'], email: ['email', 'email_verified'], profile: ['name'] },
  cookies: { keys: ['test'] },
  findAccount: (ctx, id) => ({
    accountId: id,
    claims: () => ({ sub: id, email: `${id}@example.net`, email_verified: !id.startsWith('new'), name: `Real ${id}` }),
  }),
});
provider.listen(Number(port), '127.0.0.1', () => console.log('listening'));

// The service worker of the client. It keeps the files of the first screen, whose names change with their content, and
// a page for times without a connection. It stores no answer of the server besides these: no page of a user, no message.
// The server writes CACHE, OFFLINE and FILES above this text, so that each version of the client has a worker of its own.
'use strict';

self.addEventListener('install', (event) => {
  event.waitUntil((async () => {
    const cache = await caches.open(CACHE);
    await cache.addAll([OFFLINE, ...FILES]);
    await self.skipWaiting();
  })());
});

self.addEventListener('activate', (event) => {
  event.waitUntil((async () => {
    for (const name of await caches.keys()) {
      if (name.startsWith('parley-') && name !== CACHE) await caches.delete(name);
    }
    await self.clients.claim();
  })());
});

self.addEventListener('fetch', (event) => {
  const { request } = event;
  if (request.method !== 'GET' || new URL(request.url).origin !== self.location.origin) return;
  if (request.mode === 'navigate') event.respondWith(page(request));
  else if (FILES.includes(new URL(request.url).pathname)) event.respondWith(file(request));
});

// page asks the server, and answers with the page for times without a connection if the server cannot be reached.
async function page(request) {
  try {
    return await fetch(request);
  } catch (err) {
    const offline = await caches.match(OFFLINE);
    if (offline) return offline;
    throw err;
  }
}

// file answers from the cache first: the content of a name never changes.
async function file(request) {
  return await caches.match(request) ?? fetch(request);
}

// A notification that the server sent while no page was open (see push/web.go). A page in front shows its own.
self.addEventListener('push', (event) => {
  const m = event.data?.json();
  if (!m) return;
  event.waitUntil((async () => {
    const pages = await self.clients.matchAll({ type: 'window' });
    if (m.type === 'message' && pages.some((x) => x.focused)) return;
    await self.registration.showNotification(m.title, { body: m.body, tag: m.tag, icon: m.icon, data: { hash: m.hash } });
  })());
});

// On phones, notifications belong to the worker. A click opens their message.
self.addEventListener('notificationclick', (event) => {
  event.notification.close();
  const address = `/${event.notification.data?.hash ?? ''}`;
  event.waitUntil((async () => {
    const [client] = await self.clients.matchAll({ type: 'window' });
    if (!client) return self.clients.openWindow(address);
    await client.focus();
    return client.navigate(address);
  })());
});

// The service worker keeps the files of the first screen and a page for times without a connection (see
// service_worker.js of the server). Browsers run it only on secure sites.

// startWorker registers the service worker. Without it everything but the page for times without a connection works.
export function startWorker(): void {
  if (!("serviceWorker" in navigator)) return;
  navigator.serviceWorker.register("/service-worker.js").catch((err: unknown) => console.info("no service worker", err));
}

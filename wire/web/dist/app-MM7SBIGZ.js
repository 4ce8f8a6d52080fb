import{Q as r}from"./chunk-3UXCK5SM.js";r();

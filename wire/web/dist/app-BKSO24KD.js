import{Q as r}from"./chunk-Y23M7ZX6.js";r();

import{eb as r}from"./chunk-2KB6ARPR.js";r();

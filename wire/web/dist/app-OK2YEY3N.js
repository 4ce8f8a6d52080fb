import{Q as r}from"./chunk-POTE667Q.js";r();

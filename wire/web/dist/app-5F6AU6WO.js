import{bb as r}from"./chunk-XFCPJJJR.js";r();

import{$a as r}from"./chunk-Q2ZMPXWS.js";r();

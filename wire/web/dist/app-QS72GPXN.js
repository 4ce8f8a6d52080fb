import{oa as r}from"./chunk-RXQKEQ2G.js";r();

import{Cb as r}from"./chunk-IPXS7XWN.js";r();

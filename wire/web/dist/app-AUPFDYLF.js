import{Cb as r}from"./chunk-NRXRA7CT.js";r();

import{Cb as r}from"./chunk-JGPML2EU.js";r();

import{Va as r}from"./chunk-M6723UL7.js";r();

import{eb as r}from"./chunk-KYEDPC4O.js";r();

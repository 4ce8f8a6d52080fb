import{eb as r}from"./chunk-2ASQJOHF.js";r();

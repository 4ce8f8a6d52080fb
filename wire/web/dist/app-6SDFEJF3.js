import{Va as r}from"./chunk-BUYNQUEB.js";r();

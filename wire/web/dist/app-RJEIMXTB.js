import{sd as r}from"./chunk-RHDRITT2.js";r();

import{Wb as r}from"./chunk-N76PAOFV.js";r();

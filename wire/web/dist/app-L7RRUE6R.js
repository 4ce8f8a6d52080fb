import{sd as r}from"./chunk-G3MNZREZ.js";r();

import{sd as r}from"./chunk-HIZALV3K.js";r();

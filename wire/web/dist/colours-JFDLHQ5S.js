import{a as o,b as r}from"./chunk-DP723TNZ.js";import"./chunk-IPXS7XWN.js";export{r as ColourCard,o as ColourChoice};

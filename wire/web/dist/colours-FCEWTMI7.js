import{a as o,b as r}from"./chunk-JL5ATSWC.js";import"./chunk-DYHP2VQW.js";export{r as ColourCard,o as ColourChoice};

import{a as o,b as r}from"./chunk-L5SMOD6O.js";import"./chunk-VLV6FW3N.js";export{r as ColourCard,o as ColourChoice};

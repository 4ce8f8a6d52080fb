import{a as o}from"./chunk-MOLW2B7N.js";import"./chunk-MIA4J2XO.js";import"./chunk-N6COOIYJ.js";import"./chunk-W626PSYW.js";export{o as Privacy};

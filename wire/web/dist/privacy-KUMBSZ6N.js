import{a as o}from"./chunk-5XXVTGJY.js";import"./chunk-AKYIKX4A.js";import"./chunk-5MQY7JCS.js";import"./chunk-NIZ6D3DO.js";export{o as Privacy};
